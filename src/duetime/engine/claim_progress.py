"""How far the timers of each shard are claimed, so that claims need not read past them again."""

import asyncio
from collections.abc import Mapping

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.ports.store import ClaimBatch, ClaimStart, DuePosition, Leases

_AFTER_EVERY_UUID = b"\xff" * 17


class ClaimProgress:
    """One position for all shards, and an earlier instant for single ones: for shards that were
    taken since, and where a timer was written that is due before the position.

    Timers are claimed in order, so every claim moves the position: to the last timer claimed, or
    to the instant until which all were claimed.
    """

    def __init__(self) -> None:
        self.doubted = asyncio.Event()
        """Set when announcements may have been missed, so that stragglers are searched for."""
        self._position: DuePosition | None = None
        self._behind: dict[ShardNumber, Instant | None] = {}
        self._covered: Leases = {}

    @property
    def due_at(self) -> Instant | None:
        """The instant before which all timers are claimed, as far as is known; None at first."""
        return None if self._position is None else self._position.due_at

    def start(
        self, leases: Leases, until_inclusive: Instant, written: Mapping[ShardNumber, Instant]
    ) -> ClaimStart | None:
        """Where to begin the next claim. `written` has the earliest instant of the timers that
        were written in each shard and are due before the position."""
        if self._position is not None and until_inclusive < self._position.due_at:
            # The clock was set back: timers that are due until the position need not have been
            # announced.
            self._position = None
        if self._position is None:
            return None
        if leases is not self._covered:
            for shard, epoch in leases.items():
                if self._covered.get(shard) != epoch:
                    self._behind[shard] = None
            self._covered = leases
        for shard, due_at in written.items():
            behind = self._behind.get(shard, due_at)
            self._behind[shard] = None if behind is None else min(behind, due_at)
        if self._behind:
            self._behind = {shard: at for shard, at in self._behind.items() if shard in leases}
        return ClaimStart(self._position, self._behind)

    def claimed(self, leases: Leases, until_inclusive: Instant, batch: ClaimBatch) -> None:
        """A claim that began at `start` was answered."""
        if batch.next_due_at is None or batch.next_due_at > until_inclusive:
            reached = DuePosition(until_inclusive, _AFTER_EVERY_UUID)
        elif batch.claimed_until is not None:
            reached = batch.claimed_until
        else:
            return
        if self._position is None or not _is_before(reached, self._position):
            self._position, self._behind = reached, {}
            self._covered = leases
            return
        for shard, due_at in self._behind.items():
            if due_at is None or due_at < reached.due_at:
                self._behind[shard] = reached.due_at


def _is_before(one: DuePosition, other: DuePosition) -> bool:
    return (one.due_at, one.timer_uuid) < (other.due_at, other.timer_uuid)
