"""Who may act on which shard.

A shard number is the unit of ownership, shared by all namespaces: the timers of shard 3 of every
namespace have one owner. So the number of leases depends on the largest namespace, not on how
many namespaces there are.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from duetime.domain.keys import Epoch, ShardNumber


class ShardState(Struct, frozen=True):
    """`owner` is None when the shard was released or never owned."""

    shard: ShardNumber
    epoch: Epoch
    owner: str | None


class LeaseStore(Protocol):
    """Ownership of shards, arbitrated by the store. Every write is atomic and durable."""

    async def shards(self) -> Sequence[ShardState]:
        """All shards that some namespace uses, in the order of their numbers."""
        ...

    async def claim_shard(
        self, shard: ShardNumber, *, owner: str, seen_epoch: Epoch
    ) -> Epoch | None:
        """Take the shard by compare-and-increment: the new epoch, or None when the shard's
        epoch is no longer `seen_epoch` and somebody else was faster.

        From then on every write under an older epoch changes nothing.
        """
        ...

    async def release_shard(self, shard: ShardNumber, *, epoch: Epoch) -> bool:
        """Give the shard up if the epoch is still current.

        The epoch stays as it is: it fences former owners, not the one that releases."""
        ...
