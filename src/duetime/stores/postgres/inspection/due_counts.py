"""Pending timers counted by the span in which they fall due."""

from collections.abc import Collection, Sequence

import asyncpg

from duetime.domain.instants import Instant
from duetime.ports.inspection import DueCount
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.inspection.census import LIMIT_TIME

# Values: $1 and $2 the spans, $3 the number of timers. One shard after the other, by the index of
# the engine's claims.
DUE = """
    SELECT (
        SELECT count(*) FROM (
            SELECT FROM shards CROSS JOIN LATERAL (
                SELECT FROM pending_timers
                WHERE pending_timers.shard = shards.shard
                  AND due_at >= span.first AND due_at < span.until LIMIT $3
            ) AS due LIMIT $3
        ) AS counted
    )
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS span (first, until, number)
    ORDER BY number
"""

# Values: $1 and $2 the spans, $3 the number of timers, $4 the namespaces. By the index of lists,
# which has the instants that clients asked for.
TO_EXECUTE = """
    SELECT (
        SELECT count(*) FROM (
            SELECT FROM unnest($4::text[]) AS asked (name) CROSS JOIN LATERAL (
                SELECT FROM pending_timers
                WHERE namespace COLLATE "POSIX" = asked.name
                  AND execute_at >= span.first AND execute_at < span.until LIMIT $3
            ) AS due LIMIT $3
        ) AS counted
    )
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS span (first, until, number)
    ORDER BY number
"""

# Values: $1 and $2 the spans, $3 the number of timers, $4 the namespaces. Attempts that were put
# off, from the latest back. The row without a number has the timers that were looked at.
PUT_OFF = """
    WITH put_off AS MATERIALIZED (
        SELECT late.due_at FROM unnest($4::text[]) AS asked (name) CROSS JOIN LATERAL (
            SELECT due_at FROM pending_timers
            WHERE namespace COLLATE "POSIX" = asked.name AND execute_at < ($1::bigint[])[1]
            ORDER BY execute_at DESC LIMIT $3
        ) AS late LIMIT $3
    )
    SELECT number - 1, count(*)
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS span (first, until, number)
    JOIN put_off ON due_at >= first AND due_at < until GROUP BY number
    UNION ALL
    SELECT NULL, count(*) FROM put_off
"""


async def count_due(
    connections: Connections,
    bounds: Sequence[Instant],
    most: int,
    namespaces: Collection[str] | None,
) -> list[DueCount] | None:
    # One more than asked for tells whether there are more.
    values = list(bounds[:-1]), list(bounds[1:]), most + 1
    again: dict[int | None, int] = {}
    async with connections.borrow() as connection:
        try:
            async with connection.transaction(readonly=True):
                await connection.execute(LIMIT_TIME)
                if namespaces is None:
                    rows = await connection.fetch(DUE, *values)
                else:
                    names = list(namespaces)
                    again = dict(map(tuple, await connection.fetch(PUT_OFF, *values, names)))
                    rows = await connection.fetch(TO_EXECUTE, *values, names)
        except asyncpg.QueryCanceledError:
            return None
    are_all = again.get(None, 0) <= most
    counts = [count + again.get(number, 0) for number, (count,) in enumerate(rows)]
    return [DueCount(min(count, most), are_all and count <= most) for count in counts]
