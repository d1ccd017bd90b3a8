"""The schema of the file: migrations, applied in order, each in one transaction."""

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import apsw

from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.stores.migrations import Migration, read_migrations, refuse_newer
from duetime.stores.sqlite.connections import (
    beside,
    has_log,
    not_opened,
    open_read_only,
    real_path,
)

APPLICATION_ID = int.from_bytes(b"DueT")
"""Mark in the file's header. Files from before the first release have none, and their schema
versions mean something else."""

FIRST_PAGE_BYTES = 4_096
"""Size of a new file before its schema is committed. A first start that is cut short leaves it."""

SHOWN_DIFFERENCES = 3

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_INITIAL_PAGES = slice(16, 20)

_OWN_NAMES = "schema.name NOT LIKE 'sqlite!_%' ESCAPE '!'"

# Every object of the schema, and every column of its tables.
_PARTS = f"""
    SELECT schema.type || ' ' || schema.name FROM sqlite_schema AS schema WHERE {_OWN_NAMES}
    UNION ALL
    SELECT 'column ' || schema.name || '.' || columns.name
    FROM sqlite_schema AS schema JOIN pragma_table_xinfo(schema.name) AS columns
    WHERE schema.type = 'table' AND {_OWN_NAMES}
"""


def migrations() -> list[Migration]:
    return read_migrations("duetime.stores.sqlite")


def newest_version() -> int:
    return migrations()[-1][0]


def stored_version(connection: apsw.Connection, *, max_empty_pages: int = 1) -> int:
    """The schema version of the file; 0 when nothing is in it yet. A new file has one page once it
    is open for writing.

    Raises `SchemaRefused` for a file from before the first release or of another program, for a
    file that has pages and no schema, and for a file whose tables are not those of its version.
    """
    version = int(connection.pragma("user_version"))
    application_id = connection.pragma("application_id")
    parts = _parts_of(connection)
    if application_id == APPLICATION_ID:
        _refuse_other_parts(connection.filename, version, parts)
        return version
    if not application_id and not version and not parts:
        _refuse_pages_without_schema(connection, max_empty_pages)
        return 0
    if not application_id and version and "table timers" in parts:
        raise SchemaRefused(
            f"{connection.filename} is from before the first release of Duetime and cannot be"
            " upgraded: start with a new file (to keep the timers, export them with the version"
            " that wrote the file, and import them)"
        )
    raise SchemaRefused(f"{connection.filename} is not a Duetime file: choose another path")


def _parts_of(connection: apsw.Connection) -> set[str]:
    return {part for (part,) in connection.execute(_PARTS)}


@cache
def _parts_made_by(scripts: tuple[str, ...]) -> frozenset[str]:
    with closing(apsw.Connection(":memory:")) as connection:
        for script in scripts:
            connection.execute(script)
        return frozenset(_parts_of(connection))


def _refuse_other_parts(name: str, version: int, parts: set[str]) -> None:
    """Objects that no migration knows are left alone: tools for replication add tables."""
    known = migrations()
    if version > known[-1][0]:
        # Its parts are not known here. The caller refuses the version.
        return
    expected = _parts_made_by(tuple(script for number, script in known if number <= version))
    newest = _parts_made_by(tuple(script for _, script in known))
    lacking = sorted(expected - parts)
    too_new = sorted(parts & (newest - expected))
    if version < 1 or lacking or too_new:
        lists = (("it lacks", lacking), ("it already has", too_new))
        differences = [f"{words} {_shortened(names)}" for words, names in lists if names]
        raise SchemaRefused(
            f"{name} is not a whole store: by its header it has schema version {version}"
            f"{', but ' if differences else ''}{' and '.join(differences)}. It may be an"
            " unfinished copy: restore a backup with `duetime restore`, or choose another path"
        )


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN_DIFFERENCES])
    more = len(names) - SHOWN_DIFFERENCES
    return f"{shown} and {more} more" if more > 0 else shown


def _refuse_pages_without_schema(connection: apsw.Connection, max_empty_pages: int) -> None:
    pages = int(connection.pragma("page_count"))
    if pages > max_empty_pages:
        raise SchemaRefused(
            f"{connection.filename} is not empty, but has no schema of Duetime. It may be an"
            " unfinished copy, or a copy without its -wal file: restore a backup with"
            " `duetime restore`, or choose another path"
        )


def schema_version(path: Path, *, after_crash: bool = False) -> int:
    """The schema version of the file; 0 when there is no file, or nothing in it yet.

    Changes nothing. Raises `SchemaRefused` like `stored_version`. A file with a page and no schema
    is accepted only `after_crash`, which may have cut short the first start on a new file.
    """
    refuse_log_without_file(path)
    if not path.exists():
        return 0
    refuse_unfinished_copy(path)
    try:
        with closing(open_read_only(path)) as connection:
            return stored_version(connection, max_empty_pages=1 if after_crash else 0)
    except apsw.ReadOnlyError as error:
        raise StoreUnavailable(
            f"{path} was left in the middle of a write: start the service once, which mends it"
        ) from error
    except apsw.Error as error:
        raise not_opened(path, error) from error


def refuse_log_without_file(path: Path) -> None:
    """Refuse a missing or empty file with a log beside it, which SQLite would delete unread."""
    if has_log(path) and not (path.exists() and path.stat().st_size):
        raise SchemaRefused(
            f"{path} is {'empty' if path.exists() else 'missing'}, but {path.name}-wal beside it"
            " has a log that may hold accepted timers: put back the file that belongs to the log;"
            " or, to start without those timers, restore a backup with `duetime restore --force`"
            " or move the log away"
        )


def refuse_unfinished_copy(path: Path) -> None:
    """Refuse a file that another program was making, page by page, when it was ended.

    SQLite would empty the file, by the journal beside it, and that looks like a new store.
    """
    try:
        with beside(real_path(path), "-journal").open("rb") as journal:
            header = journal.read(_JOURNAL_INITIAL_PAGES.stop)
        size = path.stat().st_size
    except OSError:
        return
    initial_pages = int.from_bytes(header[_JOURNAL_INITIAL_PAGES])
    if header.startswith(_JOURNAL_MAGIC) and not initial_pages and size > FIRST_PAGE_BYTES:
        raise SchemaRefused(
            f"{path} is an unfinished copy, as {path.name}-journal beside it shows: restore a"
            " backup with `duetime restore`, or choose another path"
        )


def finish_interrupted_write(path: Path) -> None:
    """Undo a write that a crash cut short before the file had a write-ahead log: the first start
    on a new file or on a backup. Call under the lock of the file."""
    if beside(real_path(path), "-journal").exists():
        refuse_unfinished_copy(path)
        with closing(apsw.Connection(str(path))) as connection:
            _parts_of(connection)


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
