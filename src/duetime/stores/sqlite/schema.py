"""The schema of the file: migrations, applied in order, each in one transaction."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from duetime.domain.errors import SchemaRefused
from duetime.stores.migrations import Migration, read_migrations, refuse_newer
from duetime.stores.sqlite.connections import not_opened, open_read_only

APPLICATION_ID = int.from_bytes(b"DueT")
"""Mark in the file's header. Files from before the first release have none, and their schema
versions mean something else."""

_TABLES = "SELECT name FROM sqlite_schema"


def migrations() -> list[Migration]:
    return read_migrations("duetime.stores.sqlite")


def stored_version(connection: apsw.Connection) -> int:
    """The schema version of the file; 0 when nothing is in it yet.

    Raises `SchemaRefused` for a file from before the first release or of another program.
    """
    version = int(connection.pragma("user_version"))
    application_id = connection.pragma("application_id")
    if application_id == APPLICATION_ID:
        return version
    tables = {name for (name,) in connection.execute(_TABLES)}
    if not application_id and not version and not tables:
        return 0
    if not application_id and version and "timers" in tables:
        raise SchemaRefused(
            f"{connection.filename} is from before the first release of Duetime and cannot be"
            " upgraded: start with a new file (to keep the timers, export them with the version"
            " that wrote the file, and import them)"
        )
    raise SchemaRefused(f"{connection.filename} is not a Duetime file: choose another path")


def schema_version(path: Path) -> int:
    """The schema version of the file; 0 when there is no file, or nothing in it yet.

    Changes nothing. Raises `SchemaRefused` like `stored_version`.
    """
    if not path.exists():
        return 0
    try:
        with closing(open_read_only(path)) as connection:
            return stored_version(connection)
    except apsw.Error as error:
        raise not_opened(path, error) from error


def migrate(connection: apsw.Connection, known: Sequence[Migration] | None = None) -> None:
    """Bring the schema up to date. A file written by a newer release is refused."""
    known = migrations() if known is None else known
    version = stored_version(connection)
    refuse_newer(version, known[-1][0])
    for number, script in known:
        if number > version:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(script)
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", number)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
