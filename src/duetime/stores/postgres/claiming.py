"""Claiming what is due."""

from collections.abc import Sequence

from duetime.domain.instants import Instant
from duetime.domain.timer import Claim
from duetime.ports.store import ClaimBatch, Leases
from duetime.stores.postgres.claim_statement import MAX_MERGED_SHARDS, claim_statement
from duetime.stores.postgres.claim_text import CLAIM_AS_TEXT, claims_of, readable
from duetime.stores.postgres.connections import Connections

_SMALLEST_DEPTH = 8

BEFORE_EVERYTHING = -(2**63)

EXECUTING = f"""
    SELECT held.claim
    FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, epoch)
    CROSS JOIN LATERAL (
        SELECT {CLAIM_AS_TEXT} AS claim FROM executing_timers
        WHERE executing_timers.shard = leased.shard AND executing_timers.epoch = leased.epoch
        OFFSET 0
    ) AS held
"""


class Claiming:
    """Claims, and remembers how unevenly what is due is spread over many shards."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._extra_depth = 1

    async def claim_due(
        self,
        leases: Leases,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        since_inclusive: Instant | None,
    ) -> ClaimBatch:
        since = BEFORE_EVERYTHING if since_inclusive is None else since_inclusive
        valid = dict(leases)
        while valid:
            values = [list(valid), list(valid.values()), until_inclusive, limit, now, since]
            if len(valid) > MAX_MERGED_SHARDS:
                values.append(self._depth(len(valid), limit))
            row = await self._connections.fetch_one(claim_statement(len(valid)), *values)
            assert row is not None
            text, next_due_at, found, lost = row
            if lost is None:
                more_is_due = next_due_at is not None and next_due_at <= until_inclusive
                self._learn(found, limit, more_is_due=more_is_due)
                return ClaimBatch(claims_of(text), next_due_at)
            for shard in lost:
                del valid[shard]
        return ClaimBatch([], None)

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        rows = await self._connections.fetch(EXECUTING, list(leases), list(leases.values()))
        return list(readable(text for (text,) in rows))

    def _depth(self, shards: int, limit: int) -> int:
        """How many timers to look at in each of many shards."""
        even_share = -(-limit // shards)
        return min(limit, (2 * even_share + _SMALLEST_DEPTH) * self._extra_depth)

    def _learn(self, found: int, limit: int, *, more_is_due: bool) -> None:
        """Look deeper next time if that is why the batch did not reach its limit."""
        if found < limit and more_is_due:
            self._extra_depth = min(2 * self._extra_depth, limit)
        else:
            self._extra_depth = max(self._extra_depth // 2, 1)
