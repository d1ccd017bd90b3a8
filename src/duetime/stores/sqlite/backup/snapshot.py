"""Copying one consistent state of a store into a new file, beside a running service."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from duetime.domain.errors import CopyRefused, SchemaRefused, StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import StoreContent
from duetime.stores.sqlite.connections import not_opened, open_read_only
from duetime.stores.sqlite.disk.space import enough_bytes
from duetime.stores.sqlite.schema import newest_version, schema_version, stored_version

PAGES_PER_STEP = 256
"""Pages that are copied at a time: 1 MiB."""

STEPS_PER_SYNC = 8
"""Steps between two syncs. One sync at the end would write everything at once, and hold up the
commits of the service meanwhile."""

ROOM_TO_LEAVE_BYTES = 64 * 2**20
"""Free space that a copy leaves on its disk, beside the reserve of a service on the same one."""

STEPS_PER_SIGNAL_CHECK = 100_000
"""Steps of a query after which Python looks for signals, so that Ctrl-C ends a long check."""

_TABLES = """
    SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name
"""
_COUNTS = "SELECT status, sum(count) FROM counts GROUP BY status"
_OVERDUE = "SELECT count(*) FROM live_timers WHERE status = 0 AND due_at < ?1"
_LAST_CHANGE = """
    SELECT max(updated_at) FROM (
        SELECT max(updated_at) AS updated_at FROM live_timers
        UNION ALL SELECT max(updated_at) FROM finished_timers)
"""

# Bytes of the header that say how the file is read and written: without a write-ahead log.
_MODE_OFFSET = 18
_ROLLBACK_MODE = b"\x01\x01"

Advance = Callable[[int], None]
"""Called with the number of bytes that were copied since the last call."""


@contextmanager
def opened_whole(path: Path) -> Iterator[apsw.Connection]:
    """The file, opened for reading in one consistent view, after a look at its schema: it may be of
    this release or of an earlier one."""
    if not path.is_file():
        raise StoreUnavailable(f"cannot open {path}: there is no such file")
    version, newest = schema_version(path), newest_version()
    if not version:
        raise SchemaRefused(f"{path} is empty: there is nothing to copy")
    if version > newest:
        raise SchemaRefused(
            f"{path} has schema version {version}, but this release of Duetime knows only"
            f" version {newest}: use a newer release"
        )
    try:
        connection = open_read_only(path)
    except apsw.Error as error:
        raise not_opened(path, error) from error
    with closing(connection):
        connection.set_progress_handler(lambda: False, STEPS_PER_SIGNAL_CHECK)
        connection.execute("BEGIN")
        yield connection


def size_of_store(path: Path) -> int:
    """Size in bytes, with what is in the log only."""
    with opened_whole(path) as connection:
        return _size_of(connection)


def check_store(path: Path, now: Instant) -> StoreContent:
    """Check that the file is a whole store, and count what is in it."""
    return _checked(path, now, source=path)


def _checked(path: Path, now: Instant, *, source: Path) -> StoreContent:
    try:
        with opened_whole(path) as connection:
            found = [line for (line,) in connection.execute("PRAGMA quick_check(1)")]
            if found != ["ok"]:
                raise CopyRefused(f"{source} is damaged: {found[0]}")
            return _content_of(connection, now)
    except apsw.Error as error:
        raise CopyRefused(f"{source} is damaged: {error}") from error


def copy_snapshot(
    source: Path, target: Path, now: Instant, advance: Advance, *, reserve_bytes: int = 0
) -> StoreContent:
    """Copy the state of the source at this moment into the empty file `target`, sync the copy to
    disk and check it.

    One read transaction lasts from the first page to the last, so the copy is consistent and ends
    after its number of pages, however much is written meanwhile. The log of the source cannot be
    restarted during that time and grows with what is written. The copy is a single file, without a
    log: SQLite's rollback mode, until a service opens it.
    """
    try:
        with opened_whole(source) as reading:
            _leave_room(target.parent, _size_of(reading), reserve_bytes)
            _copy_pages(reading, target, advance)
            rows = _rows_of(reading)
        _finish(target)
    except apsw.Error as error:
        raise CopyRefused(f"cannot copy {source} to {target}: {_reason(error)}") from error
    except OSError as error:
        raise CopyRefused(f"cannot write {target}: {error.strerror}") from error
    content = _checked(target, now, source=source)
    if content.rows != rows:
        raise CopyRefused(f"the copy differs from {source}: rows {content.rows}, not {rows}")
    return content


def _reason(error: apsw.Error) -> str:
    """A failed step of a copy has no text of its own."""
    if isinstance(error, apsw.FullError):
        return "the disk is full"
    if isinstance(error, apsw.IOError):
        return "the disk cannot be read or written"
    return str(error)


def _leave_room(directory: Path, size_bytes: int, reserve_bytes: int) -> None:
    """Below its reserve, the service would refuse new timers. The log grows during the copy."""
    room = os.statvfs(directory)
    free_bytes = room.f_bavail * room.f_frsize
    room_to_leave_bytes = enough_bytes(reserve_bytes) + ROOM_TO_LEAVE_BYTES
    if free_bytes < size_bytes + room_to_leave_bytes:
        raise CopyRefused(
            f"{directory} has {free_bytes / 1e6:,.0f} MB of room, but the copy takes"
            f" {size_bytes / 1e6:,.0f} MB and leaves {room_to_leave_bytes / 1e6:,.0f} MB to the"
            " service: make room, or choose another disk"
        )


def _copy_pages(reading: apsw.Connection, target: Path, advance: Advance) -> None:
    page_bytes = int(reading.pragma("page_size"))
    with (
        _descriptor_of(target) as descriptor,
        closing(_unguarded(target)) as writing,
        writing.backup("main", reading, "main") as copying,
    ):
        copied_pages = steps = 0
        while not copying.done:
            copying.step(PAGES_PER_STEP)
            steps += 1
            if steps % STEPS_PER_SYNC == 0:
                os.fdatasync(descriptor)
            before, copied_pages = copied_pages, copying.page_count - copying.remaining
            advance((copied_pages - before) * page_bytes)


def _unguarded(path: Path) -> apsw.Connection:
    """A connection for a file that counts only once it is complete: SQLite keeps no journal, and
    the caller syncs."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("journal_mode", "off")
        connection.pragma("synchronous", "off")
    except BaseException:
        connection.close()
        raise
    return connection


def _finish(target: Path) -> None:
    with _descriptor_of(target) as descriptor:
        os.pwrite(descriptor, _ROLLBACK_MODE, _MODE_OFFSET)
        os.fsync(descriptor)


@contextmanager
def _descriptor_of(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content_of(connection: apsw.Connection, now: Instant) -> StoreContent:
    counts = dict(connection.execute(_COUNTS))
    ((overdue,),) = connection.execute(_OVERDUE, (now,))
    ((last_change_at,),) = connection.execute(_LAST_CHANGE)
    return StoreContent(
        schema_version=stored_version(connection),
        size_bytes=_size_of(connection),
        rows=_rows_of(connection),
        counts={status: counts.get(status, 0) for status in TimerStatus},
        overdue=overdue,
        last_change_at=last_change_at,
    )


def _rows_of(connection: apsw.Connection) -> dict[str, int]:
    names = [name for (name,) in connection.execute(_TABLES)]
    rows = {}
    for name in names:
        ((rows[name],),) = connection.execute(f'SELECT count(*) FROM "{name}"')
    return rows


def _size_of(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
