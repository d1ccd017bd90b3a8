"""Timers counted by namespace, from numbers that triggers keep up to date."""

from collections.abc import Iterable

import asyncpg

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import LiveCounts, NamespaceCounts
from duetime.stores.postgres.connections import ANY_PLAN, Connection, Connections, Row, connected
from duetime.stores.postgres.options import PostgresOptions

COUNTED_STATUSES = (TimerStatus.PENDING, TimerStatus.FAILED)
"""Statuses whose numbers the database keeps."""

FOLD_FROM_ROWS = 1_000
"""Rows of changes from which they are folded. Each fold leaves a dead version of the counts that it
changes, which stays as long as an old snapshot is held."""

FOLDED_AT_ONCE = 20_000
"""Rows of changes folded by one statement."""

_MAX_FOLDS = 20
"""Folds in a row, after which the numbers are read whatever is left to fold."""

_COUNTING_TIMEOUT_SECONDS = 3_600.0
"""Time for counting all timers, which takes seconds for every few million."""

# The name that comes after the first $1 namespaces, if there are more.
FIRST_UNNAMED = "SELECT name FROM namespaces ORDER BY name LIMIT 1 OFFSET $1"

# Value $1: the first name that is not asked for, or NULL. The row without a status has the number
# of rows that may be folded. Namespaces that are gone keep a count of 0 until the next fold.
COUNTS = """
    WITH unfolded AS MATERIALIZED (
        SELECT status, namespaces, changes FROM timer_count_changes
        WHERE changed_in >= (SELECT folded_until FROM timer_count_state)
    ), parts AS (
        SELECT namespace, status, count FROM timer_counts
        UNION ALL
        SELECT change.namespace, unfolded.status, change.timers
        FROM unfolded CROSS JOIN LATERAL unnest(unfolded.namespaces, unfolded.changes)
            AS change (namespace, timers)
    )
    SELECT name, status, count FROM (
        SELECT CASE WHEN $1::text IS NULL OR namespace < $1 THEN namespace END AS name, status,
               sum(count)::bigint AS count
        FROM parts GROUP BY name, status
    ) AS counted
    WHERE count <> 0 OR name IS NULL
       OR EXISTS (SELECT FROM namespaces WHERE namespaces.name = counted.name)
    UNION ALL
    SELECT NULL, NULL, count(*) FROM unfolded
"""

_IS_COUNTED = "SELECT is_counted FROM timer_count_state"
_FOLD = "SELECT fold_timer_counts($1)"
_RECOUNT = "SELECT recount_timers()"

# A dump of another server has transaction numbers that this one has yet to reach.
_BEGIN_ANEW = """
    UPDATE timer_count_state SET folded_until = '0'
    WHERE folded_until > pg_snapshot_xmax(pg_current_snapshot())
"""

# While an old snapshot is held, both indexes may be full of dead entries.
LIMIT_TIME = "SET LOCAL statement_timeout = '1s'"

# Value $1: the number of timers. The index of the key has all that is asked for.
EXECUTING = """
    SELECT namespace, count(*) FROM (
        SELECT namespace FROM executing_timers ORDER BY namespace, id LIMIT $1
    ) AS executing GROUP BY namespace
"""

# Values: $1 the instant, $2 the number of timers. One shard after the other, by the index of the
# engine's claims.
OVERDUE = """
    SELECT namespace, count(*) FROM (
        SELECT due.namespace FROM shards CROSS JOIN LATERAL (
            SELECT namespace FROM pending_timers
            WHERE pending_timers.shard = shards.shard AND due_at < $1
            ORDER BY due_at, timer_uuid LIMIT $2
        ) AS due LIMIT $2
    ) AS overdue GROUP BY namespace
"""


async def begin_anew(connections: Connections) -> None:
    """Read all changes once if the database comes from another server."""
    await connections.fetch(_BEGIN_ANEW)


async def count_by_namespace(
    connections: Connections, options: PostgresOptions, most_names: int
) -> NamespaceCounts | None:
    if not await connections.fetch_value(_IS_COUNTED) and not await _recount(options):
        return None
    first_unnamed = await connections.fetch_value(FIRST_UNNAMED, most_names)
    rows = await connections.fetch(COUNTS, first_unnamed)
    unfolded = next(number for _, status, number in rows if status is None)
    if unfolded >= FOLD_FROM_ROWS:
        await fold(connections)
    return NamespaceCounts(_of(TimerStatus.PENDING, rows), _of(TimerStatus.FAILED, rows))


async def read_counts(connection: Connection) -> dict[tuple[str, int], int] | None:
    """The number of timers by namespace and status; None if they are yet to be counted."""
    if not await connection.fetchval(_IS_COUNTED):
        return None
    rows = await connection.fetch(COUNTS, None)
    return {(name, status): count for name, status, count in rows if status is not None}


async def fold(connections: Connections) -> None:
    """Add the changes to the counts, unless another node is at it."""
    for _ in range(_MAX_FOLDS):
        if await connections.fetch_value(_FOLD, FOLDED_AT_ONCE) < FOLDED_AT_ONCE:
            return


async def count_live(connections: Connections, now: Instant, most: int) -> LiveCounts | None:
    async with connections.borrow() as connection:
        try:
            async with connection.transaction(readonly=True):
                await connection.execute(LIMIT_TIME)
                # One more than asked for tells whether there are more.
                executing = _by_namespace(await connection.fetch(EXECUTING, most + 1))
                overdue = _by_namespace(await connection.fetch(OVERDUE, now, most + 1))
        except asyncpg.QueryCanceledError:
            return None
    are_all = max(sum(executing.values()), sum(overdue.values())) <= most
    return LiveCounts(executing, overdue, are_all)


async def _recount(options: PostgresOptions) -> bool:
    """Count all timers, unless another node is at it. Answers whether they are counted."""
    async with connected(
        options, ANY_PLAN, statement_timeout_seconds=_COUNTING_TIMEOUT_SECONDS
    ) as connection:
        try:
            async with connection.transaction(isolation="repeatable_read"):
                is_counted: bool = await connection.fetchval(_RECOUNT)
                return is_counted
        except asyncpg.SerializationError:
            # Another node has just done it.
            return False


def _by_namespace(rows: Iterable[Row]) -> dict[str, int]:
    return {row[0]: row[1] for row in rows}


def _of(status: TimerStatus, rows: Iterable[Row]) -> dict[str | None, int]:
    return {name: count for name, its_status, count in rows if its_status == status}
