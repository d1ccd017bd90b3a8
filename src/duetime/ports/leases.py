"""Who may act on which shard.

A shard number is the unit of ownership, shared by all namespaces: the timers of shard 3 of every
namespace have one owner. So the number of leases depends on the largest namespace, not on how
many namespaces there are.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.store import Leases


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

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        """Take shards by compare-and-increment: those that were taken, with their new epochs.

        A shard whose epoch is no longer the one that was seen is left alone: somebody else was
        faster. From then on every write under an older epoch changes nothing; one that was
        under way is either complete before this returns or changes nothing.
        """
        ...

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        """Give up the shards whose epochs are still current; answers which.

        The epochs stay as they are: they fence former owners, not the one that releases."""
        ...
