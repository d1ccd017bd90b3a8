"""Opening connections to the file, for writing, reading and checkpointing."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import apsw

from duetime.domain.errors import StoreUnavailable
from duetime.stores.sqlite.reading import Reader
from duetime.stores.sqlite.statements import Statements

Result = TypeVar("Result")
Connected = TypeVar("Connected", bound=Statements)

_OUR_FAULTS = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError)

WRITER_CACHE_KIB = 65_536
READER_CACHE_KIB = 4_096
_BUSY_TIMEOUT_MS = 5_000


def connect(path: Path, cache_kib: int) -> apsw.Connection:
    """A connection on which every commit is on disk when it returns (WAL, synchronous=FULL).

    Automatic checkpoints are off: they would run inside commits and stall creates for as long
    as they take. The checkpointer does them beside the writer.
    """
    connection = apsw.Connection(str(path), statementcachesize=128)
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("temp_store", "memory")
    return connection


def store_error(error: Exception) -> Exception:
    """Driver errors become ours here; a fault in our own code stays what it is, also if SQLite
    found it: trying again would not help."""
    if isinstance(error, apsw.Error) and not isinstance(error, _OUR_FAULTS):
        return StoreUnavailable(f"the SQLite database could not do this: {error}")
    return error


def read_in_one_view(connection: Connected, read: Callable[[Connected], Result]) -> Result:
    """All statements of the read see the same state of the file."""
    connection.execute("BEGIN")
    try:
        return read(connection)
    finally:
        connection.execute("ROLLBACK")


class Readers:
    """Threads that read beside the writer. Each read sees one consistent state of the file."""

    def __init__(self, path: Path, threads: int) -> None:
        self._idle: SimpleQueue[Statements] = SimpleQueue()
        for _ in range(threads):
            self._idle.put(Statements(connect(path, READER_CACHE_KIB)))
        self._threads = threads
        self._closed = False
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="duetime-sqlite-reader")

    async def run(self, read: Callable[[Reader], Result]) -> Result:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._read, read)

    def _read(self, read: Callable[[Reader], Result]) -> Result:
        connection = self._idle.get()
        try:
            return read_in_one_view(connection, read)
        except apsw.Error as error:
            raise store_error(error) from error
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        self._closed = True
        self._executor.shutdown()
        for _ in range(self._threads):
            self._idle.get().close()
