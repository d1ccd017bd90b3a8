"""Writing a copy into a new file."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

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
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.copying.source import SqliteSource
from duetime.stores.sqlite.disk.failure import EndOfProcess
from duetime.stores.sqlite.disk.opening import open_file
from duetime.stores.sqlite.tables import ASKED
from duetime.stores.sqlite.writer import Writer

_MARK = f"SELECT {MARK_COLUMNS} FROM copies"
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


def _insert(table: str, columns: Sequence[str]) -> str:
    """The values of a timer are its row id, then its columns in their order."""
    places = [
        1 if name == "row_id" else COLUMNS_OF[Table.TIMERS].index(name) + 2 for name in columns
    ]
    values = ", ".join(f"?{place}" for place in places)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


_INSERT_TIMER = _insert("timers", ("row_id", *ASKED))
_INSERT_LIVE = _insert("live_timers", _LIVE)
_INSERT_FINISHED = _insert("finished_timers", _FINISHED)


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
    file = open_file(path, reserve_bytes, on_failure)
    with file.closing:
        writer = Writer(file.connection, on_failure, file.checkpointer.between_commits)
        try:
            yield SqliteTarget(str(path), writer), SqliteSource(file.connection)
        finally:
            await writer.close()


def _begin(
    transaction: Transaction, place: str, source: str, identity: str, now: Instant
) -> CopyMark:
    row = transaction.first(_MARK)
    if row is not None:
        mark = mark_of(row)
        refuse_other(place, mark, source, identity)
        return mark
    occupied = [
        table for table in Table if transaction.first(f"SELECT 1 FROM {table} LIMIT 1") is not None
    ]
    refuse_occupied(place, occupied)
    transaction.execute(_ADD_MARK, source, identity, now)
    return new_mark(source, identity, now)


def _write(transaction: Transaction, batch: Batch) -> None:
    timers = 0
    if batch.table is Table.TIMERS:
        timers = len(batch.rows)
        _write_timers(transaction, batch.rows)
    else:
        names = COLUMNS_OF[batch.table]
        values = ", ".join("?" * len(names))
        insert = f"INSERT INTO {batch.table} ({', '.join(names)}) VALUES ({values})"
        transaction.execute_many(insert, batch.rows)
    transaction.execute(_ADVANCE, position_text(batch.position), timers)


def _write_timers(transaction: Transaction, rows: Sequence[Row]) -> None:
    (first,) = transaction.first(_NEXT_ROW)
    numbered = [(row_id, *row) for row_id, row in enumerate(rows, first)]
    finished = [row for row in numbered if row[STATUS + 1] >= TimerStatus.COMPLETED]
    live = [row for row in numbered if row[STATUS + 1] < TimerStatus.COMPLETED]
    transaction.execute_many(_INSERT_TIMER, numbered)
    transaction.execute_many(_INSERT_LIVE, live)
    transaction.execute_many(_INSERT_FINISHED, finished)
    for (namespace, status), count in Counter(
        (row[NAMESPACE], row[STATUS]) for row in rows
    ).items():
        transaction.count(namespace, TimerStatus(status), count)
