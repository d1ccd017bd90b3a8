"""Connections to the file: for writing, reading and checkpointing."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from duetime.domain.errors import StoreUnavailable
from duetime.domain.timer import TimerStatus

Result = TypeVar("Result")

WRITER_CACHE_KIB = 24_576
READER_CACHE_KIB = 4_096
BUSY_TIMEOUT_MS = 5_000

_LOG_HEADER_BYTES = 32

_OUR_FAULTS = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError)

_ADD_TO_COUNT = (
    "INSERT INTO counts (namespace, status, count) VALUES (?1, ?2, ?3)"
    " ON CONFLICT DO UPDATE SET count = count + ?3"
)


def real_path(path: Path) -> Path:
    """The file itself, if the path is a symbolic link: SQLite keeps the log and its index beside
    the file, and it is that disk which fills and fails."""
    return Path(os.path.realpath(path))


def beside(path: Path, suffix: str) -> Path:
    """A companion of the file: its log (`-wal`), its journal, its lock."""
    return path.with_name(path.name + suffix)


def has_log(path: Path) -> bool:
    """Whether the log beside the file has pages, and not only a header."""
    try:
        return beside(real_path(path), "-wal").stat().st_size > _LOG_HEADER_BYTES
    except OSError:
        return False


def connect(path: Path, cache_kib: int) -> apsw.Connection:
    """A connection on which every commit is on disk when it returns (WAL, synchronous=FULL).

    Automatic checkpoints are off: they would run inside commits and stall creates for as long
    as they take. The checkpointer runs them beside the writer.
    """
    connection = apsw.Connection(str(path), statementcachesize=128)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("wal_autocheckpoint", 0)
        connection.pragma("cache_size", -cache_kib)
        connection.pragma("temp_store", "memory")
    except BaseException:
        connection.close()
        raise
    return connection


def not_opened(path: Path, error: apsw.Error) -> StoreUnavailable:
    return StoreUnavailable(f"cannot open {path} as a SQLite database: {error}")


def open_read_only(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def store_error(error: Exception) -> Exception:
    """Turn a driver error into `StoreUnavailable`.

    A fault in our own code stays what it is, even if SQLite found it: retrying would not help.
    """
    if isinstance(error, apsw.Error) and not isinstance(error, _OUR_FAULTS):
        return StoreUnavailable(
            f"the SQLite database could not do this: {error}",
            public_message="the database could not do this, try again later",
        )
    return error


class Statements:
    """Runs statements on a connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, *values: Any) -> apsw.Cursor:
        return self._connection.execute(statement, values)

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that answers nothing, once for each row of values."""
        self._connection.executemany(statement, rows)

    def execute_named(self, statement: str, values: dict[str, Any]) -> apsw.Cursor:
        return self._connection.execute(statement, values)

    def first(self, statement: str, *values: Any) -> Any:
        """The first row, or None. The statement is finished afterwards."""
        cursor = self._connection.execute(statement, values)
        row = cursor.fetchone()
        cursor.close()
        return row

    def close(self) -> None:
        self._connection.close()


class Transaction(Statements):
    """An open write transaction.

    Statements that work on many timers take them as one JSON text and return one row, so that a
    batch is a single step of SQLite. A step runs without Python's interpreter lock; one step per
    timer would mean one wait per timer for that lock, in competition with a busy event loop.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._count_changes: defaultdict[tuple[str, TimerStatus], int] = defaultdict(int)

    @property
    def total_changes(self) -> int:
        """Rows written on this connection so far, including rows written by triggers."""
        return self._connection.total_changes()

    def count(self, namespace: str, status: TimerStatus, change: int) -> None:
        """Note that the number of timers with this status grows by `change`."""
        self._count_changes[namespace, status] += change

    def moved(self, namespace: str, before: TimerStatus, after: TimerStatus, timers: int) -> None:
        self.count(namespace, before, -timers)
        self.count(namespace, after, timers)

    def write_counts(self) -> None:
        for (namespace, status), change in self._count_changes.items():
            if change:
                self.execute(_ADD_TO_COUNT, namespace, status, change)
        self._count_changes.clear()


class Reader:
    """A thread that reads beside the writer. Each read sees one consistent state of the file."""

    def __init__(self, path: Path) -> None:
        self._statements = Statements(connect(path, READER_CACHE_KIB))
        self._closed = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="duetime-sqlite-reader")

    async def run(self, read: Callable[[Statements], Result]) -> Result:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._read, read)

    def _read(self, read: Callable[[Statements], Result]) -> Result:
        try:
            return read_in_one_view(self._statements, read)
        except apsw.Error as error:
            raise store_error(error) from error

    def close(self) -> None:
        self._closed = True
        self._executor.shutdown()
        self._statements.close()


def read_in_one_view(statements: Statements, read: Callable[[Statements], Result]) -> Result:
    """Run a read whose statements all see the same state of the file."""
    statements.execute("BEGIN")
    try:
        return read(statements)
    finally:
        statements.execute("ROLLBACK")
