"""Counts of attempts in time and late, of all nodes, in a table of the database."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from duetime.domain.lateness.objective import InTimeOrLate, LatenessCount
from duetime.stores.postgres.connections import Connections
from duetime.stores.stored_text import storable

# In the order of the key, so that nodes which write at the same time do not block each other.
_ADD = """
    INSERT INTO lateness_counts (namespace, hour, in_time, late)
    SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[])
        AS given (namespace, hour, in_time, late)
    ORDER BY namespace, hour
    ON CONFLICT (namespace, hour) DO UPDATE SET
        in_time = lateness_counts.in_time + excluded.in_time,
        late = lateness_counts.late + excluded.late
"""
# Each namespace has a range of the index, so that only the hours asked for are read.
_SUM = """
    SELECT name, in_time::bigint, late::bigint
    FROM unnest($1::text[], $2::integer[]) AS wanted (name, since)
    CROSS JOIN LATERAL (
        SELECT sum(in_time) AS in_time, sum(late) AS late FROM lateness_counts
        WHERE namespace = wanted.name AND hour >= wanted.since AND hour < $3
    ) AS sums
    WHERE in_time IS NOT NULL
"""
# Other nodes forget the same counts at the same time.
_FORGET = """
    WITH forgotten AS (
        DELETE FROM lateness_counts WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM lateness_counts WHERE hour < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
        RETURNING 1)
    SELECT count(*) FROM forgotten
"""


class Pools(Protocol):
    reads: Connections
    lists: Connections


class PostgresLatenessLedger:
    """Implements the lateness ledger on the database of a store."""

    def __init__(self, pools: Callable[[], Pools]) -> None:
        """`pools` raises `StoreUnavailable` while the store is closed."""
        self._pools = pools

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        if counts:
            rows = [
                (storable(each.namespace), each.hour, each.in_time, each.late) for each in counts
            ]
            await self._pools().reads.fetch(_ADD, *map(list, zip(*rows, strict=True)))

    async def sum_lateness(
        self, since: Mapping[str, int], *, until_exclusive: int
    ) -> Mapping[str, InTimeOrLate]:
        names = {storable(name): name for name in since}
        rows = await self._pools().lists.fetch(
            _SUM, list(names), list(since.values()), until_exclusive
        )
        return {names[name]: InTimeOrLate(in_time, late) for name, in_time, late in rows}

    async def forget_lateness(self, before_hour: int, *, limit: int) -> int:
        forgotten: int = await self._pools().reads.fetch_value(_FORGET, before_hour, limit)
        return forgotten
