"""Forgetting timers that finished long ago."""

import asyncpg
import structlog

from duetime.domain.instants import Instant
from duetime.stores.postgres.connections import (
    ANY_PLAN,
    PLANS_FOR_VALUES,
    Connection,
    connected,
)
from duetime.stores.postgres.options import PostgresOptions
from duetime.stores.postgres.rows import LISTS_COLLATION

_log = structlog.get_logger()

_PRUNE_TIMEOUT_SECONDS = 600.0
"""Counting a partition before it is dropped takes a second for every few million timers."""

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
        WHERE slot = pg_backend_pid() % 256
    )
    SELECT count(*) FROM gone
"""

_PARTITIONS_SINCE = """
    SELECT from_inclusive, least(to_exclusive, $1) FROM history_partitions
    WHERE from_inclusive < $1 ORDER BY from_inclusive
"""

# Values: $1 and $2 the instants between which there is one partition, so that a place in it is
# a place in the table; $3 the namespace, $4 the limit.
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
        WHERE slot = pg_backend_pid() % 256 AND EXISTS (SELECT FROM gone)
    )
    SELECT count(*) FROM gone
"""


async def prune(options: PostgresOptions, finished_before: Instant, limit: int) -> int:
    """On a connection of its own: it may take long, and is not done often.

    Whole partitions are dropped, which costs nothing. Single timers are searched for in the
    whole history: there is no index for that, as it would make every firing dearer.
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
    """From one partition after the other, each in a transaction of its own. They stay, however
    little is left in them: other namespaces may keep their timers for longer."""
    async with connected(
        options, PLANS_FOR_VALUES, statement_timeout_seconds=_PRUNE_TIMEOUT_SECONDS
    ) as connection:
        deleted = 0
        for since, until in await connection.fetch(_PARTITIONS_SINCE, finished_before):
            if deleted < limit:
                deleted += await connection.fetchval(
                    DELETE_FROM_PARTITION, since, until, namespace, limit - deleted
                )
        return deleted


async def _drop_partitions(connection: Connection, finished_before: Instant) -> int:
    """Forget those that end at or before the instant, each in a transaction of its own.

    One that is being read for long is left for the next time: everybody else would have to
    wait, too.
    """
    forgotten = 0
    for (name,) in await connection.fetch(_OLD_PARTITIONS, finished_before):
        try:
            forgotten += await connection.fetchval(_DROP_PARTITION, name) or 0
        except asyncpg.LockNotAvailableError:
            _log.info("history.drop_postponed", partition=name)
    return forgotten
