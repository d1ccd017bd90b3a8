"""Ownership of shards: which process may act on which shard."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.store import Leases


class ShardState(Struct, frozen=True):
    """`owner` is None when the shard was released or never owned."""

    shard: ShardNumber
    epoch: Epoch
    owner: str | None


class OwnedShards(Protocol):
    """The shards that this process owns, for work that only one process may do."""

    def owned_shards(self) -> Collection[ShardNumber]:
        """Pure and quick. Empty while ownership is in doubt."""
        ...


class LeaseStore(Protocol):
    """Ownership of shards, arbitrated by the store. Every write is atomic and durable.

    A shard number is the unit of ownership, shared by all namespaces: the timers of shard 3 of
    every namespace have one owner. So the number of leases depends on the largest namespace, not
    on the number of namespaces.
    """

    async def shards(self) -> Sequence[ShardState]:
        """All shards that some namespace uses, in the order of their numbers."""
        ...

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        """Take shards by compare-and-increment; returns the taken shards with their new epochs.

        A shard whose epoch is no longer the seen one is left alone: another process was faster.
        After the return every write under an older epoch changes nothing, except for settlements
        under an unfinished lease; a write that was under way is either complete before the return
        or changes nothing.
        """
        ...

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        """Give up the shards whose epochs are still current, and return them.

        The epochs stay as they are: they fence former owners, not the owner that releases."""
        ...
