"""Writing a copy into a new file."""

from collections import Counter
from collections.abc import AsyncIterator, Container, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from operator import itemgetter
from pathlib import Path

from duetime.domain.errors import CopyRefused, StoreInUse
from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.stores.copying.marks import (
    MARK_COLUMNS,
    mark_of,
    new_mark,
    position_text,
    refuse_occupied,
    refuse_other,
)
from duetime.stores.copying.ports import Batch, CopyMark
from duetime.stores.copying.tables import (
    COLUMNS_OF,
    NAMESPACE,
    STATUS,
    Row,
    Table,
)
from duetime.stores.sqlite.connections import Statements, Transaction, open_read_only
from duetime.stores.sqlite.copying.source import SqliteSource
from duetime.stores.sqlite.copying.unfinished import UNFINISHED
from duetime.stores.sqlite.disk.failure import EndOfProcess
from duetime.stores.sqlite.disk.opening import open_file
from duetime.stores.sqlite.schema import newest_version, stored_version
from duetime.stores.sqlite.tables import ASKED
from duetime.stores.sqlite.writer import Writer

_PRESENT = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_MARKS = "copies"
_MARK = f"SELECT {MARK_COLUMNS} FROM {_MARKS}"
_ADD_MARK = """
    INSERT INTO copies (number, source, identity, timers, started_at) VALUES (1, ?1, ?2, 0, ?3)
"""
_ADVANCE = "UPDATE copies SET position = ?1, timers = timers + ?2"
_FINISH = "UPDATE copies SET finished_at = ?1"
_NEXT_ROW = "SELECT coalesce(max(row_id), 0) + 1 FROM timers"

_LIVE = (
    "row_id", "namespace", "shard", "timer_uuid", "created_at", "updated_at", "execute_at",
    "due_at", "status", "attempt", "failures", "claim_number", "epoch", "claimed_at", "attempts",
    "last_error",
)  # fmt: skip
_FINISHED = (
    "row_id", "namespace", "timer_uuid", "created_at", "updated_at", "execute_at", "due_at",
    "status", "attempt", "failures", "claim_number", "epoch", "executed_at", "attempts",
    "last_error",
)  # fmt: skip


class _Insert:
    """Inserts rows that are the row id of a timer, then its columns in their order."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        named = ("row_id", *COLUMNS_OF[Table.TIMERS])
        self._values_of = itemgetter(*map(named.index, columns))
        self._statement = _insert(table, columns)

    def __call__(self, transaction: Transaction, rows: Sequence[Row]) -> None:
        transaction.execute_many(self._statement, list(map(self._values_of, rows)))


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_insert_timers = _Insert("timers", ("row_id", *ASKED))
_insert_live = _Insert("live_timers", _LIVE)
_insert_finished = _Insert("finished_timers", _FINISHED)


class SqliteTarget:
    """Implements the target of a copy on a file that is open for this alone."""

    def __init__(self, place: str, writer: Writer) -> None:
        self._place = place
        self._writer = writer

    async def begin(self, source: str, identity: str, now: Instant) -> CopyMark:
        begin = partial(_begin, place=self._place, source=source, identity=identity, now=now)
        return await self._writer.submit(begin)

    async def write(self, batch: Batch) -> None:
        await self._writer.submit(partial(_write, batch=batch))

    async def complete(self) -> None:
        """Nothing was left out."""

    async def finish(self, now: Instant) -> None:
        await self._writer.submit(lambda transaction: transaction.execute(_FINISH, now).close())


@asynccontextmanager
async def opened_target(
    path: Path, reserve_bytes: int
) -> AsyncIterator[tuple[SqliteTarget, SqliteSource]]:
    """The file, made if it is absent, to write to and to read back."""
    on_failure = EndOfProcess(path)
    try:
        file = open_file(path, reserve_bytes, on_failure, refuse=_refuse_former)
    except StoreInUse as error:
        raise CopyRefused(error.message) from error
    with file.closing:
        writer = Writer(file.connection, on_failure, file.checkpointer.between_commits)
        try:
            yield SqliteTarget(str(path), writer), SqliteSource(file.connection)
        finally:
            await writer.close()


def _refuse_former(path: Path) -> None:
    """Refuse a file of an older release that is in use. Migrated by mistake, it would be lost to
    that release. The beginning of a copy is in use by nobody."""
    with closing(open_read_only(path)) as connection:
        version = stored_version(connection)
        if version in (0, newest_version()):
            return
        statements = Statements(connection)
        present = {name for (name,) in statements.execute(_PRESENT)}
        if _MARKS not in present or statements.first(UNFINISHED) is None:
            refuse_occupied(str(path), _occupied(statements, present))


def _occupied(statements: Statements, present: Container[str]) -> list[str]:
    return [
        table
        for table in Table
        if table in present and statements.first(f"SELECT 1 FROM {table} LIMIT 1") is not None
    ]


def _begin(
    transaction: Transaction, place: str, source: str, identity: str, now: Instant
) -> CopyMark:
    row = transaction.first(_MARK)
    if row is not None:
        mark = mark_of(row)
        refuse_other(place, mark, source, identity)
        return mark
    refuse_occupied(place, _occupied(transaction, set(Table)))
    transaction.execute(_ADD_MARK, source, identity, now)
    return new_mark(source, identity, now)


def _write(transaction: Transaction, batch: Batch) -> None:
    timers = 0
    if batch.table is Table.TIMERS:
        timers = len(batch.rows)
        _write_timers(transaction, batch.rows)
    else:
        transaction.execute_many(_insert(batch.table, COLUMNS_OF[batch.table]), batch.rows)
    transaction.execute(_ADVANCE, position_text(batch.position), timers)


def _write_timers(transaction: Transaction, rows: Sequence[Row]) -> None:
    (first,) = transaction.first(_NEXT_ROW)
    numbered = [(row_id, *row) for row_id, row in enumerate(rows, first)]
    finished = [row for row in numbered if row[STATUS + 1] >= TimerStatus.COMPLETED]
    live = [row for row in numbered if row[STATUS + 1] < TimerStatus.COMPLETED]
    _insert_timers(transaction, numbered)
    _insert_live(transaction, live)
    _insert_finished(transaction, finished)
    for (namespace, status), count in Counter(
        (row[NAMESPACE], row[STATUS]) for row in rows
    ).items():
        transaction.count(namespace, TimerStatus(status), count)
