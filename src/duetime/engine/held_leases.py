"""The leases this process holds, and the time until which it may act on them."""

import math
from collections.abc import Collection, Iterable

from msgspec import Struct

from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock
from duetime.ports.store import Leases


class Handovers(Struct):
    """Shards whose owner changed, since the start of this process: those it took, those it released
    and those that others took from it."""

    taken: int = 0
    released: int = 0
    lost: int = 0


class HeldLeases:
    """Leases count only until an instant of monotonic time, which heartbeats put off.

    When it has passed, another node may have taken over: nothing may be sent then. A shard that
    is being left is still held, but no more of its timers are claimed. When it has been handed
    over, its lease is unfinished for as long as attempts are under way.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._epochs: dict[ShardNumber, Epoch] = {}
        self._claimable: Leases = {}
        self._leaving: set[ShardNumber] = set()
        self._unfinished: set[tuple[ShardNumber, Epoch]] = set()
        self.valid_until_seconds = math.inf
        self.handovers = Handovers()

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def are_valid(self) -> bool:
        return self._clock.monotonic() < self.valid_until_seconds

    @property
    def all(self) -> Leases:
        return self._epochs

    @property
    def claimable(self) -> Leases:
        """The leases to claim timers under, whether or not they are valid now."""
        return self._claimable

    @property
    def leaving(self) -> Leases:
        return {shard: self._epochs[shard] for shard in self._leaving}

    @property
    def unfinished(self) -> Collection[tuple[ShardNumber, Epoch]]:
        return self._unfinished

    def holds(self, claim: Claim) -> bool:
        """Whether the claim may be acted on now."""
        return (
            self._epochs.get(claim.shard) == claim.epoch
            or (claim.shard, claim.epoch) in self._unfinished
        ) and self.are_valid

    def take(self, leases: Leases) -> None:
        self._epochs |= leases
        self.handovers.taken += len(leases)
        self._update()

    def release(self, shards: Iterable[ShardNumber]) -> None:
        """Hold these shards no more, of this process's own will."""
        self.handovers.released += self._drop(shards)

    def lose(self, shards: Iterable[ShardNumber]) -> None:
        """Hold these shards no more: another node has taken them."""
        self.handovers.lost += self._drop(shards)

    def _drop(self, shards: Iterable[ShardNumber]) -> int:
        held = len(self._epochs)
        for shard in list(shards):
            self._epochs.pop(shard, None)
            self._leaving.discard(shard)
        self._update()
        return held - len(self._epochs)

    def hand_over(self, leases: Leases, *, unfinished: Iterable[ShardNumber]) -> None:
        """Release these leases; some of them are unfinished from now on."""
        self._unfinished |= {(shard, leases[shard]) for shard in unfinished}
        self.release(leases)

    def finish(self, leases: Iterable[tuple[ShardNumber, Epoch]]) -> None:
        self._unfinished.difference_update(leases)

    def leave(self, shards: Iterable[ShardNumber]) -> None:
        self._leaving |= self._epochs.keys() & set(shards)
        self._update()

    def stay(self, shards: Iterable[ShardNumber]) -> None:
        """Stop leaving these shards."""
        self._leaving -= set(shards)
        self._update()

    def _update(self) -> None:
        self._claimable = {
            shard: epoch for shard, epoch in self._epochs.items() if shard not in self._leaving
        }
