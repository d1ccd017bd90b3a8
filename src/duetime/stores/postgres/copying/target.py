"""Writing a copy into an empty schema, by COPY."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from duetime.domain.errors import CopyRefused
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
    CLAIMED_AT,
    COLUMNS_OF,
    EXECUTED_AT,
    SHARED_TIMER_COLUMNS,
    STATUS,
    UPDATED_AT,
    Row,
    Table,
)
from duetime.stores.postgres import schema
from duetime.stores.postgres.connections import Connection, connect
from duetime.stores.postgres.copying.source import COPY_TIMEOUT_SECONDS, FOR_COPYING
from duetime.stores.postgres.copying.unfinished import copied_place
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
from duetime.stores.postgres.history import add_partitions
from duetime.stores.postgres.options import PostgresOptions

_MARKS = "copies"
_MARK = f"SELECT {MARK_COLUMNS} FROM {_MARKS}"
_ADD_MARK = """
    INSERT INTO copies (source, identity, timers, started_at, left_out) VALUES ($1, $2, 0, $3, $4)
"""
_ADVANCE = "UPDATE copies SET position = $1, timers = timers + $2"
_FINISH = "UPDATE copies SET finished_at = $1"
_BOOK = "UPDATE ledger SET accepted = accepted + $1 WHERE slot = 0"
_ADD_FENCES = """
    INSERT INTO shard_fences (role, shard, epoch)
    SELECT role, shard, epoch FROM unnest($1::integer[], $2::bigint[]) AS added (shard, epoch)
    CROSS JOIN generate_series(0, 1) AS role
"""

# A connection whose process was killed is noticed by the server when it next writes to it.
_LOCK_TRIES = 50
_TRY_LOCK = "SELECT pg_try_advisory_lock(1685419381, hashtext($1))"
_WAIT = "SELECT pg_sleep(0.2)"

_TABLES = (
    *(table for table in Table if table is not Table.TIMERS),
    "pending_timers",
    "executing_timers",
    "finished_timers",
    "members",
)
_PRESENT = """
    SELECT array(
        SELECT name FROM unnest($1::text[]) WITH ORDINALITY AS asked (name, position)
        WHERE to_regclass(name) IS NOT NULL ORDER BY position)
"""
_LARGE_TABLES = ("pending_timers", "executing_timers", "finished_timers", "audit_log")

# Indexes that are no part of a constraint. They take most of the time of a write, and are made in a
# fraction of it from a full table.
_INDEXES = """
    SELECT index.oid::regclass::text, pg_catalog.pg_get_indexdef(index.oid)
    FROM pg_catalog.pg_index
    JOIN pg_catalog.pg_class AS index ON index.oid = pg_index.indexrelid
    WHERE pg_index.indrelid = ANY ($1::text[]::regclass[]::oid[])
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conindid = index.oid)
    ORDER BY index.relname
"""
_LEFT_OUT = "SELECT left_out FROM copies"
_NOTHING_LEFT_OUT = "UPDATE copies SET left_out = '{}'"
_ROOM_TO_SORT = "SET LOCAL maintenance_work_mem = '256MB'"

# Errors of values that the tables do not take.
_BAD_VALUES = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)


class PostgresTarget:
    """Implements the target of a copy, on a connection that holds the lock of copies."""

    def __init__(self, connection: Any, options: PostgresOptions) -> None:
        self._connection = connection
        self._options = options
        self._place = copied_place(options)

    async def begin(self, source: str, identity: str, now: Instant) -> CopyMark:
        """A schema is made or migrated once it is sure that it is a target: nodes of the release
        before cannot start on a schema that was migrated by mistake."""
        mark = await self._look(source, identity)
        if mark is not None and mark.finished_at is not None:
            return mark
        await schema.migrate(self._options)
        async with self._connection.transaction():
            mark = await self._look(source, identity)
            if mark is None:
                left_out = await self._drop_indexes()
                await self._connection.execute(_ADD_MARK, source, identity, now, left_out)
        return mark or new_mark(source, identity, now)

    async def write(self, batch: Batch) -> None:
        try:
            if batch.table is Table.TIMERS:
                await self._write_timers(batch)
            else:
                await self._write_others(batch)
        except _BAD_VALUES as error:
            error.detail = None
            raise CopyRefused(
                f"{self._place} does not take a row of {batch.table} at or before"
                f" {list(batch.position.after)} of the source's {batch.position.part}: {error}"
            ) from error

    async def complete(self) -> None:
        """Make the indexes, and statistics, without which the first plans would take full tables
        for empty."""
        try:
            async with self._connection.transaction():
                await self._connection.execute(_ROOM_TO_SORT)
                for statement in await self._connection.fetchval(_LEFT_OUT):
                    await self._connection.execute(statement)
                await self._connection.execute(_NOTHING_LEFT_OUT)
        except asyncpg.UniqueViolationError as error:
            raise CopyRefused(
                f"{self._place} has got a timer twice: another program has written to it. Begin"
                " again with an empty target"
            ) from error
        await self._connection.execute(f"ANALYZE {', '.join(_LARGE_TABLES)}")

    async def finish(self, now: Instant) -> None:
        members = await self._connection.fetchval("SELECT count(*) FROM members")
        if members:
            raise CopyRefused(f"{self._place} is in use: a node started on it during the copy")
        await self._connection.execute(_FINISH, now)

    async def _drop_indexes(self) -> list[str]:
        """The statements that make them again."""
        indexes = await self._connection.fetch(_INDEXES, _LARGE_TABLES)
        for name, _ in indexes:
            await self._connection.execute(f"DROP INDEX {name}")
        # The definition of an index over partitions does not include those.
        return [definition.replace(" ON ONLY ", " ON ", 1) for _, definition in indexes]

    async def _write_timers(self, batch: Batch) -> None:
        of_status: dict[int, list[Row]] = {}
        for row in batch.rows:
            of_status.setdefault(min(row[STATUS], TimerStatus.COMPLETED), []).append(row)
        pending = of_status.get(TimerStatus.PENDING, [])
        executing = of_status.get(TimerStatus.EXECUTING, [])
        finished = of_status.get(TimerStatus.COMPLETED, [])
        await add_partitions(
            self._connection.fetchval,
            self._options.history_step,
            [row[UPDATED_AT] for row in finished],
        )
        shared = len(SHARED_TIMER_COLUMNS)
        async with self._connection.transaction():
            await self._copy("pending_timers", (), [row[:shared] for row in pending])
            await self._copy(
                "executing_timers",
                ("claimed_at",),
                [(*row[:shared], row[CLAIMED_AT]) for row in executing],
            )
            await self._copy(
                "finished_timers",
                ("status", "executed_at"),
                [(*row[:shared], row[STATUS], row[EXECUTED_AT]) for row in finished],
            )
            await self._connection.execute(_BOOK, len(batch.rows))
            await self._advance(batch, len(batch.rows))

    async def _copy(self, table: str, more: Sequence[str], rows: Sequence[Row]) -> None:
        if rows:
            await self._connection.copy_records_to_table(
                table, records=rows, columns=[*SHARED_TIMER_COLUMNS, *more]
            )

    async def _write_others(self, batch: Batch) -> None:
        table, columns = batch.table, COLUMNS_OF[batch.table]
        rows = batch.rows
        if table is Table.OPERATIONS:
            place = columns.index("is_running")
            rows = [(*row[:place], bool(row[place]), *row[place + 1 :]) for row in rows]
        async with self._connection.transaction():
            await self._connection.copy_records_to_table(table, records=rows, columns=columns)
            if table is Table.SHARDS:
                shards, epochs = zip(*rows, strict=True)
                await self._connection.execute(_ADD_FENCES, shards, epochs)
            await self._advance(batch, 0)

    async def _advance(self, batch: Batch, timers: int) -> None:
        await self._connection.execute(_ADVANCE, position_text(batch.position), timers)

    async def _look(self, source: str, identity: str) -> CopyMark | None:
        """The mark of this copy, None if there is nothing. Refuses everything else. The schema may
        be that of an older release."""
        if await schema.stored_version(self._connection, self._options) is None:
            return None
        tables = await self._connection.fetchval(_PRESENT, [_MARKS, *_TABLES])
        row = await self._connection.fetchrow(_MARK) if _MARKS in tables else None
        if row is not None:
            mark = mark_of(row)
            refuse_other(self._place, mark, source, identity)
            return mark
        occupied = [
            table
            for table in tables
            if await self._connection.fetchval(f"SELECT EXISTS (SELECT FROM {table})")
        ]
        refuse_occupied(self._place, occupied)
        return None


@asynccontextmanager
async def opened_target(options: PostgresOptions) -> AsyncIterator[PostgresTarget]:
    """The schema, while no other copy writes to it."""
    connection = await connect(options, FOR_COPYING, statement_timeout_seconds=COPY_TIMEOUT_SECONDS)
    try:
        await _lock(connection, options)
        yield PostgresTarget(connection, options)
    except DRIVER_ERRORS as error:
        raise store_error(error, options) from error
    finally:
        connection.terminate()


async def _lock(connection: Connection, options: PostgresOptions) -> None:
    for _ in range(_LOCK_TRIES):
        if await connection.fetchval(_TRY_LOCK, options.schema):
            return
        await connection.execute(_WAIT)
    raise CopyRefused(f"another `duetime copy` writes to PostgreSQL ({options.place})")
