"""The schema of the file: migrations, applied in order, each in one transaction."""

from collections.abc import Sequence

import apsw

from duetime.domain.errors import SchemaRefused
from duetime.stores.migrations import Migration, read_migrations, refuse_newer

APPLICATION_ID = int.from_bytes(b"DueT")
"""Mark in the file's header. Files from before the first release have none, and their schema
versions mean something else."""


def migrations() -> list[Migration]:
    return read_migrations("duetime.stores.sqlite")


def stored_version(connection: apsw.Connection) -> int:
    """The schema version of the file; 0 when nothing is in it yet.

    Raises `SchemaRefused` for a file from before the first release.
    """
    version = int(connection.pragma("user_version"))
    if version and connection.pragma("application_id") != APPLICATION_ID:
        raise SchemaRefused(
            f"{connection.filename} is from before the first release of Duetime and cannot be"
            " upgraded: start with a new file (to keep the timers, export them with the version"
            " that wrote the file, and import them)"
        )
    return version


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
