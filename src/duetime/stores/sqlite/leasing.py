"""Shards and their owners."""

from collections.abc import Mapping

from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.leases import ShardState
from duetime.ports.store import Leases
from duetime.stores.sqlite.connections import Statements, Transaction

_SHARDS = "SELECT shard, epoch, owner FROM shards ORDER BY shard"

_CLAIM_SHARD = """
    UPDATE shards SET epoch = epoch + 1, owner = ?2 WHERE shard = ?1 AND epoch = ?3
    RETURNING epoch
"""

_RELEASE_SHARD = """
    UPDATE shards SET owner = NULL WHERE shard = ?1 AND epoch = ?2 RETURNING epoch
"""


def read_shards(statements: Statements) -> list[ShardState]:
    return [
        ShardState(ShardNumber(shard), Epoch(epoch), owner)
        for shard, epoch, owner in statements.execute(_SHARDS)
    ]


def claim_shards(
    transaction: Transaction, seen: Mapping[ShardNumber, Epoch], owner: str
) -> dict[ShardNumber, Epoch]:
    return {
        shard: Epoch(row[0])
        for shard, epoch in seen.items()
        if (row := transaction.first(_CLAIM_SHARD, shard, owner, epoch)) is not None
    }


def release_shards(transaction: Transaction, leases: Leases) -> set[ShardNumber]:
    return {
        shard
        for shard, epoch in leases.items()
        if transaction.first(_RELEASE_SHARD, shard, epoch) is not None
    }
