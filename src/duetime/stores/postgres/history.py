"""The history: partitions of finished timers, made when a write needs one, pruned when old by a
clock that may be believed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import asyncpg
import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.stores.postgres.connections import (
    ANY_PLAN,
    PLANS_FOR_VALUES,
    Connection,
    Connections,
    connected,
)
from duetime.stores.postgres.options import PostgresOptions
from duetime.stores.postgres.tables import LISTS_COLLATION

Result = TypeVar("Result")

_log = structlog.get_logger()

_MAX_TRIES = 3
"""Tries of a write that lacks a partition. A second one fails only if partitions are dropped as
fast as they are made."""

_PRUNE_TIMEOUT_SECONDS = 600.0
"""Time for one statement. Counting a partition before it is dropped takes a second for every few
million timers."""

_ADD_PARTITION = "SELECT add_history_partition($1, $2)"

_OLD_PARTITIONS = """
    SELECT name FROM history_partitions WHERE to_exclusive <= $1 ORDER BY from_inclusive
"""

_DROP_PARTITION = "SELECT drop_history_partition($1)"

_DELETE_OLD = """
    WITH old AS MATERIALIZED (
        SELECT tableoid AS partition, ctid AS place FROM finished_timers
        WHERE updated_at < $1 ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM finished_timers AS timer USING old
        WHERE timer.tableoid = old.partition AND timer.ctid = old.place
        RETURNING 1
    ), booked AS (
        UPDATE ledger SET pruned = pruned + (SELECT count(*) FROM gone)
        WHERE slot = (SELECT ledger_slot())
    )
    SELECT count(*) FROM gone
"""

_BELIEVED_AT = "SELECT believed_at FROM clock"
_MARK_BELIEVED = """
    INSERT INTO clock (believed_at) VALUES ($1)
    ON CONFLICT (is_only) DO UPDATE SET believed_at = excluded.believed_at
"""

_PARTITIONS_BEFORE = """
    SELECT from_inclusive, least(to_exclusive, $1) FROM history_partitions
    WHERE from_inclusive < $1 ORDER BY from_inclusive
"""

# Values: $1 and $2 instants within one partition, in which a ctid is unique; $3 the namespace, $4
# the limit.
DELETE_FROM_PARTITION = f"""
    WITH gone AS (
        DELETE FROM finished_timers
        WHERE updated_at >= $1 AND updated_at < $2 AND namespace = $3 AND ctid = ANY (ARRAY(
            SELECT ctid FROM finished_timers
            WHERE updated_at >= $1 AND updated_at < $2
              AND namespace = $3 {LISTS_COLLATION}
            LIMIT $4 FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), booked AS (
        UPDATE ledger SET pruned = pruned + (SELECT count(*) FROM gone)
        WHERE slot = (SELECT ledger_slot()) AND EXISTS (SELECT FROM gone)
    )
    SELECT count(*) FROM gone
"""


async def write_with_history(
    connections: Connections,
    history_step: int,
    finished_at: Sequence[Instant],
    write: Callable[[], Awaitable[Result]],
) -> Result:
    """Do a write that finishes timers at these instants.

    The whole write fails if an instant has no partition. The partitions are then made, and the
    write is repeated.
    """
    for _ in range(_MAX_TRIES):
        try:
            return await write()
        except asyncpg.CheckViolationError:
            await add_partitions(connections.fetch_value, history_step, finished_at)
    raise StoreUnavailable("the history's partitions disappear as fast as they are made")


async def add_partitions(
    fetch_value: Callable[..., Awaitable[Any]], history_step: int, finished_at: Iterable[Instant]
) -> None:
    """Make the missing partitions. An instant within the partition of the one before needs none."""
    there_until: int | None = None
    for instant in sorted(finished_at):
        if there_until is None or instant >= there_until:
            there_until = await fetch_value(_ADD_PARTITION, instant, history_step)


async def prune(options: PostgresOptions, finished_before: Instant, limit: int) -> int:
    """Forget timers of all namespaces, on a separate connection: it may take long, and is rare.

    Dropping whole partitions costs nothing. Single timers are searched for in the whole history,
    because an index for them would slow down every firing.
    """
    async with connected(
        options, ANY_PLAN, statement_timeout_seconds=_PRUNE_TIMEOUT_SECONDS
    ) as connection:
        if options.history_step > 1 and finished_before % options.history_step == 0:
            return await _drop_partitions(connection, finished_before)
        deleted: int = await connection.fetchval(_DELETE_OLD, finished_before, limit)
        if deleted < limit:
            deleted += await _drop_partitions(connection, finished_before)
        return deleted


async def prune_namespace(
    options: PostgresOptions, namespace: str, finished_before: Instant, limit: int
) -> int:
    """Forget timers of one namespace, in one transaction per partition. The partitions stay, even
    nearly empty: other namespaces may keep their timers for longer."""
    async with connected(
        options, PLANS_FOR_VALUES, statement_timeout_seconds=_PRUNE_TIMEOUT_SECONDS
    ) as connection:
        deleted = 0
        for since, until in await connection.fetch(_PARTITIONS_BEFORE, finished_before):
            if deleted < limit:
                deleted += await connection.fetchval(
                    DELETE_FROM_PARTITION, since, until, namespace, limit - deleted
                )
        return deleted


async def _drop_partitions(connection: Connection, finished_before: Instant) -> int:
    """Forget the partitions that end at or before the instant, in one transaction each.

    A partition that is being read for long is left for the next time: waiting for it would make
    everybody else wait, too.
    """
    forgotten = 0
    for (name,) in await connection.fetch(_OLD_PARTITIONS, finished_before):
        try:
            forgotten += await connection.fetchval(_DROP_PARTITION, name) or 0
        except asyncpg.LockNotAvailableError:
            _log.info("history.drop_postponed", partition=name)
    return forgotten


async def clock_believed_at(connections: Connections) -> Instant | None:
    believed_at: Instant | None = await connections.fetch_value(_BELIEVED_AT)
    return believed_at


async def mark_clock_believed(connections: Connections, now: Instant) -> None:
    await connections.fetch(_MARK_BELIEVED, now)
