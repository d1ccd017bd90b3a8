"""Which node should own which shard: rendezvous hashing with an even share for everyone."""

from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import blake2b

from duetime.domain.keys import ShardNumber


def spread(shards: Iterable[ShardNumber], nodes: Collection[str]) -> dict[ShardNumber, str]:
    """The node that every shard belongs to; empty without nodes.

    Each shard goes to the node that draws the highest lot for it, among those that do not have
    their share yet. The shares of any two nodes differ by one shard at most. All who know the
    same nodes come to the same result, and when a node joins or leaves, few shards move.
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
        owner = max(candidates, key=lambda node: (_lot(node, shard), node))
        left_over -= owned[owner] == share
        owned[owner] += 1
        owners[shard] = owner
    return owners


def _lot(node: str, shard: ShardNumber) -> bytes:
    return blake2b(f"{shard}/{node}".encode(), digest_size=8).digest()
