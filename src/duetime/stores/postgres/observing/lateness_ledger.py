"""Counts of attempts in time and late, of all nodes, in a table of the database."""

from collections.abc import Callable, Sequence
from typing import Protocol

from duetime.domain.lateness.objective import LatenessCount
from duetime.stores.postgres.connections import Connections
from duetime.stores.stored_text import storable

# In the order of the key, so that nodes which write at the same time do not block each other.
_ADD = """
    INSERT INTO lateness_counts (namespace, hour, in_time, late)
    SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[])
        AS given (namespace, hour, in_time, late)
    ORDER BY hour, namespace
    ON CONFLICT (hour, namespace) DO UPDATE SET
        in_time = lateness_counts.in_time + excluded.in_time,
        late = lateness_counts.late + excluded.late
"""
_SINCE = "SELECT namespace, hour, in_time, late FROM lateness_counts WHERE hour >= $1"
_FORGET = "DELETE FROM lateness_counts WHERE hour < $1"


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

    async def lateness_since(self, hour: int) -> Sequence[LatenessCount]:
        rows = await self._pools().lists.fetch(_SINCE, hour)
        return [LatenessCount(*row) for row in rows]

    async def forget_lateness(self, before_hour: int) -> None:
        await self._pools().reads.fetch(_FORGET, before_hour)
