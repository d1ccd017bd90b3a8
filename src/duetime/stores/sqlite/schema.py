"""Numbered migrations, applied in order, each in one transaction."""

from importlib import resources

import apsw

from duetime.domain.errors import StoreUnavailable


def migrations() -> list[tuple[int, str]]:
    """Number and script of each migration, in order."""
    folder = resources.files("duetime.stores.sqlite") / "migrations"
    scripts = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return [(int(script.name.split("_")[0]), script.read_text()) for script in scripts]


def migrate(connection: apsw.Connection) -> None:
    """Bring the schema up to date. A file written by a newer release is refused."""
    version = connection.pragma("user_version")
    known = migrations()
    newest = known[-1][0]
    if version > newest:
        raise StoreUnavailable(
            f"the database has schema version {version}, but this release of duetime knows only"
            f" version {newest}: start a newer release"
        )
    for number, script in known:
        if number > version:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(script)
                connection.pragma("user_version", number)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
