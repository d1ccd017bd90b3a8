"""Forgetting timers that finished long ago."""

from duetime.domain.instants import Instant
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connected
from duetime.stores.postgres.options import PostgresOptions

_PRUNE_TIMEOUT_SECONDS = 600.0
"""Counting a partition before it is dropped takes a second for every few million timers."""

_OLD_PARTITIONS = """
    SELECT name FROM history_partitions WHERE to_exclusive <= $1 ORDER BY from_inclusive
"""

_DROP_PARTITION = "SELECT drop_history_partition($1)"

_DELETE_OLD = """
    WITH old AS MATERIALIZED (
        SELECT tableoid AS partition, ctid AS place FROM finished_timers
        WHERE updated_at < $1 ORDER BY updated_at LIMIT $2
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


async def prune(options: PostgresOptions, finished_before: Instant, limit: int) -> int:
    """On a connection of its own: it may take long, and is not done often."""
    async with connected(
        options, ANY_PLAN, statement_timeout_seconds=_PRUNE_TIMEOUT_SECONDS
    ) as connection:
        if finished_before % options.history_step == 0:
            return await _drop_partitions(connection, finished_before)
        deleted: int = await connection.fetchval(_DELETE_OLD, finished_before, limit)
        return deleted


async def _drop_partitions(connection: Connection, finished_before: Instant) -> int:
    """Each in a transaction of its own."""
    forgotten = 0
    for (name,) in await connection.fetch(_OLD_PARTITIONS, finished_before):
        forgotten += await connection.fetchval(_DROP_PARTITION, name)
    return forgotten
