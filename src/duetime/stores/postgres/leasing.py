"""Shards and who owns them."""

from collections.abc import Mapping

from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.leases import ShardState
from duetime.ports.store import Leases
from duetime.stores.postgres.connections import Connections

_SHARDS = "SELECT shard, epoch, owner FROM shards ORDER BY shard"

# Values: $1 shards, $2 the epochs they were seen with, at the places of their numbers.
#
# Locks the shards in their order, and then the fences in theirs, as everybody does. The fences
# are what a write of the former owner holds: this waits for it, and what comes later finds the
# new epoch.
CLAIM_SHARDS = """
    WITH wanted AS MATERIALIZED (
        SELECT shard, epoch FROM shards
        WHERE shard = ANY ($1::integer[]) ORDER BY shard FOR NO KEY UPDATE
    ), free AS MATERIALIZED (
        SELECT shard FROM wanted WHERE epoch = ($2::bigint[])[shard + 1]
    ), fence AS MATERIALIZED (
        SELECT shard FROM shard_fences
        WHERE shard = ANY (ARRAY(SELECT shard FROM free)) AND role = ANY ('{0,1}')
        ORDER BY role, shard FOR NO KEY UPDATE
    ), raised AS (
        UPDATE shard_fences SET epoch = ($2::bigint[])[shard + 1] + 1
        WHERE shard = ANY (ARRAY(SELECT DISTINCT shard FROM fence)) AND role = ANY ('{0,1}')
    )
    UPDATE shards SET epoch = epoch + 1, owner = $3
    WHERE shard = ANY (ARRAY(SELECT DISTINCT shard FROM fence))
    RETURNING shard, epoch
"""

_RELEASE_SHARDS = """
    WITH mine AS MATERIALIZED (
        SELECT shard, epoch FROM shards
        WHERE shard = ANY ($1::integer[]) ORDER BY shard FOR NO KEY UPDATE
    )
    UPDATE shards SET owner = NULL
    WHERE shard = ANY (ARRAY(SELECT shard FROM mine WHERE epoch = ($2::bigint[])[shard + 1]))
    RETURNING shard
"""


async def read_shards(connections: Connections) -> list[ShardState]:
    return [
        ShardState(ShardNumber(shard), Epoch(epoch), owner)
        for shard, epoch, owner in await connections.fetch(_SHARDS)
    ]


async def claim_shards(
    connections: Connections, seen: Mapping[ShardNumber, Epoch], owner: str
) -> dict[ShardNumber, Epoch]:
    rows = await connections.fetch(CLAIM_SHARDS, list(seen), epochs_by_number(seen), owner)
    return {ShardNumber(shard): Epoch(epoch) for shard, epoch in rows}


async def release_shards(connections: Connections, leases: Leases) -> set[ShardNumber]:
    rows = await connections.fetch(_RELEASE_SHARDS, list(leases), epochs_by_number(leases))
    return {ShardNumber(shard) for (shard,) in rows}


def epochs_by_number(leases: Leases) -> list[int]:
    """Epochs at the places of their shards; -1, which no epoch is, at the others."""
    return [leases.get(ShardNumber(number), -1) for number in range(max(leases, default=-1) + 1)]
