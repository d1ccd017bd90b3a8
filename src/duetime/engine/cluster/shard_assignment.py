"""Assigns shards to nodes: rendezvous hashing with an even share for every node."""

from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import blake2b

from duetime.domain.keys import ShardNumber


def assign_shards(shards: Iterable[ShardNumber], nodes: Collection[str]) -> dict[ShardNumber, str]:
    """The node that every shard belongs to; empty without nodes.

    Each shard goes to the node with the highest score for it, among those that do not have their
    share yet. The shares of any two nodes differ by one shard at most. Nodes that know the same
    members come to the same result, and when a node joins or leaves, few shards move.
    """
    numbers = sorted(shards)
    if not nodes:
        return {}
    share, left_over = divmod(len(numbers), len(nodes))
    owned: Counter[str] = Counter()
    owners = {}
    for shard in numbers:
        most = share if left_over else share - 1
        candidates = [node for node in nodes if owned[node] <= most]
        owner = max(candidates, key=lambda node: (_score(node, shard), node))
        left_over -= owned[owner] == share
        owned[owner] += 1
        owners[shard] = owner
    return owners


def _score(node: str, shard: ShardNumber) -> bytes:
    return blake2b(f"{shard}/{node}".encode(), digest_size=8).digest()
