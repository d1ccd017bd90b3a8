"""Reading everything in a file, part by part, in the order of the parts' keys."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw

from duetime.domain.errors import CopyRefused, StoreInUse
from duetime.stores.copying.ports import (
    DEFAULT_BATCH_ROWS,
    MAX_BATCH_BYTES,
    Batch,
    Position,
    parts_behind,
)
from duetime.stores.copying.tables import (
    COLUMNS_OF,
    SIGNED_IN,
    TEXT_COLUMNS,
    Row,
    Table,
    identity_of,
    storable_rows,
    text_of,
)
from duetime.stores.sqlite.connections import open_read_only, store_error
from duetime.stores.sqlite.copying.unfinished import refuse_half_copied
from duetime.stores.sqlite.file_lock import FileLock
from duetime.stores.sqlite.inspector import require_newest
from duetime.stores.sqlite.tables import ASKED

_CACHE_KIB = 65_536

_COUNTS = """
    SELECT (SELECT count(*) FROM timers),
           (SELECT count(*) FROM live_timers JOIN timers USING (row_id)),
           (SELECT count(*) FROM finished_timers JOIN timers USING (row_id))
"""


class _Part(NamedTuple):
    """Rows of a table. The key comes first in each row that is read, and begins after `first`."""

    table: Table
    name: str
    key: Sequence[str]
    first: Sequence[int | str]
    rows: str
    columns: Sequence[str]

    def statement(self, *, in_bytes: bool = False) -> str:
        """Rows behind a key, in order. Damaged text can be read as bytes only."""
        columns = list(self.columns)
        if in_bytes:
            names = COLUMNS_OF[self.table]
            columns = [
                f"CAST({column} AS BLOB)" if name in TEXT_COLUMNS else column
                for name, column in zip(names, columns, strict=True)
            ]
        key, places = ", ".join(self.key), ", ".join("?" * len(self.key))
        return (
            f"SELECT {key}, {', '.join(columns)} FROM {self.rows}"
            f" WHERE ({key}) > ({places}) ORDER BY {key}"
        )


def _plain_part(table: Table, rows: str | None = None, **first: int | str) -> _Part:
    """`first` has a value below all others for each column of the key. Without `rows`, they are all
    rows of the table."""
    key, below = list(first), list(first.values())
    return _Part(table, table, key, below, rows or table, COLUMNS_OF[table])


def _timers_part(name: str, key: str, absent: str) -> _Part:
    """`absent` is the column that the states of this part do not have."""
    columns = [
        "NULL" if name == absent else f"{'timers' if name in ASKED else 'state'}.{name}"
        for name in COLUMNS_OF[Table.TIMERS]
    ]
    rows = f"{name} AS state CROSS JOIN timers ON timers.row_id = state.row_id"
    return _Part(Table.TIMERS, name, [f"state.{key}"], [-(2**63)], rows, columns)


_PARTS = (
    _plain_part(Table.NAMESPACES, name=""),
    _plain_part(Table.SHARDS, shard=-1),
    _plain_part(Table.CLOCK, number=0),
    _plain_part(
        Table.CREDENTIALS, f"(SELECT * FROM credentials WHERE id NOT LIKE '{SIGNED_IN}')", id=""
    ),
    _plain_part(Table.OPERATIONS, id=""),
    _plain_part(Table.AUDIT_LOG, id=""),
    _plain_part(Table.LATENESS_COUNTS, namespace="", hour=-1),
    _plain_part(Table.PAUSED_ENDPOINTS, endpoint=""),
    _timers_part("live_timers", "row_id", "executed_at"),
    _timers_part("finished_timers", "finish_number", "claimed_at"),
)


class SqliteSource:
    """Implements the source of a copy, on a connection that sees no writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._timers: int | None = None

    async def identity(self) -> str:
        return await asyncio.to_thread(self._identity, await self.count_timers())

    async def count_timers(self) -> int:
        if self._timers is None:
            self._timers = await asyncio.to_thread(self._count)
        return self._timers

    async def batches(
        self, after: Position | None, *, rows: int = DEFAULT_BATCH_ROWS, in_order: bool = True
    ) -> AsyncIterator[Batch]:
        for part, key in parts_behind(_PARTS, after):
            reading = _PartReader(self._connection, part, key or part.first)
            while found := await asyncio.to_thread(partial(reading.read, rows)):
                yield Batch(part.table, found, Position(part.name, reading.key))

    def _identity(self, timers: int) -> str:
        with _driver_errors():
            shards = list(self._connection.execute("SELECT shard, epoch FROM shards ORDER BY 1"))
            namespaces = list(self._connection.execute("SELECT * FROM namespaces ORDER BY 1"))
        return identity_of("sqlite", namespaces, shards, timers)

    def _count(self) -> int:
        with _driver_errors():
            ((timers, live, finished),) = self._connection.execute(_COUNTS)
        if timers != live + finished:
            raise CopyRefused(
                f"the source has {timers} timers in {live + finished} states: `duetime audit` shows"
                " which of them are wrong"
            )
        return int(timers)


class _PartReader:
    """`key` is that of the last row read."""

    def __init__(self, connection: apsw.Connection, part: _Part, key: Sequence[int | str]) -> None:
        self._connection = connection
        self._part = part
        self.key = key
        self._cursor: apsw.Cursor | None = None

    def read(self, max_rows: int) -> Sequence[Row]:
        """The next rows; none at the end."""
        found: list[Row] = []
        size = 0
        key_columns = len(self._part.key)
        with _driver_errors():
            while len(found) < max_rows and size < MAX_BATCH_BYTES:
                row = self._next()
                if row is None:
                    break
                self.key = row[:key_columns]
                found.append(row[key_columns:])
                size += sum(len(value) for value in row if isinstance(value, str))
        return storable_rows(self._part.table, found)

    def _next(self) -> Row | None:
        if self._cursor is None:
            self._cursor = self._connection.execute(self._part.statement(), self.key)
        try:
            return self._cursor.fetchone()
        except UnicodeDecodeError:
            self._cursor = None
            return self._next_damaged()

    def _next_damaged(self) -> Row:
        cursor = self._connection.execute(self._part.statement(in_bytes=True), self.key)
        try:
            row: Row | None = cursor.fetchone()
        except UnicodeDecodeError:
            raise CopyRefused(
                f"the source is damaged: a key of {self._part.name} is not UTF-8"
            ) from None
        finally:
            cursor.close()
        assert row is not None, "the row was there a moment ago, and nobody writes"
        key, values = row[: len(self._part.key)], row[len(self._part.key) :]
        names = COLUMNS_OF[self._part.table]
        texts = (
            text_of(name, value) if name in TEXT_COLUMNS and value is not None else value
            for name, value in zip(names, values, strict=True)
        )
        return (*key, *texts)


@asynccontextmanager
async def locked_source(path: Path) -> AsyncIterator[SqliteSource]:
    """The content of a file on which no service runs, or starts meanwhile."""
    with _locked(path), _opened(path) as connection:
        refuse_half_copied(path, connection)
        yield SqliteSource(connection)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    require_newest(path)
    try:
        lock = FileLock(path)
    except StoreInUse as error:
        raise CopyRefused(error.message) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    with _driver_errors():
        connection = open_read_only(path)
    try:
        connection.pragma("cache_size", -_CACHE_KIB)
        yield connection
    finally:
        connection.close()


@contextmanager
def _driver_errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise store_error(error) from error
