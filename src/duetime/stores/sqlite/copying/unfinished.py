"""Refusing a file that holds only a part of a copy."""

from pathlib import Path

import apsw

from duetime.stores.copying.marks import refuse_unfinished
from duetime.stores.sqlite.connections import Statements
from duetime.stores.sqlite.disk.failure import OnFailure
from duetime.stores.sqlite.disk.opening import OpenFile, open_file

UNFINISHED = "SELECT source, started_at FROM copies WHERE finished_at IS NULL"


def open_whole(path: Path, reserve_bytes: int, on_failure: OnFailure) -> OpenFile:
    """Open the file for a service. Raises `SchemaRefused` if a copy into it has not ended."""
    file = open_file(path, reserve_bytes, on_failure)
    try:
        refuse_half_copied(path, file.connection)
    except BaseException:
        file.closing.close()
        raise
    return file


def refuse_half_copied(path: Path, connection: apsw.Connection) -> None:
    refuse_unfinished(str(path), Statements(connection).first(UNFINISHED))
