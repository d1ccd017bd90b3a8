"""The pending timers of one shard, in the order in which they are due."""

from heapq import heapify, heappop, heappush
from typing import NamedTuple

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer

_STALE_ENTRIES_TOLERATED = 64


class DueEntry(NamedTuple):
    """Sorts by (due_at, timer_uuid), which is unique, so keys are never compared."""

    due_at: Instant
    timer_uuid: bytes
    key: TimerKey


class DueQueue:
    """A heap with lazy deletion: a discarded entry stays until it surfaces or is swept.

    An entry counts only while it is the very object that `_planned` holds for its key, so a
    timer that moves away and back cannot appear twice.
    """

    def __init__(self) -> None:
        self._heap: list[DueEntry] = []
        self._planned: dict[TimerKey, DueEntry] = {}

    def put(self, timer: Timer) -> None:
        """Plan the timer for its `due_at`, instead of any earlier plan."""
        entry = DueEntry(timer.due_at, timer.timer_uuid, timer.key)
        self._planned[timer.key] = entry
        heappush(self._heap, entry)
        self._sweep()

    def discard(self, key: TimerKey) -> None:
        del self._planned[key]
        self._sweep()

    def first(self) -> DueEntry | None:
        """The entry that is due first; it stays in the queue."""
        while self._heap:
            entry = self._heap[0]
            if self._planned.get(entry.key) is entry:
                return entry
            heappop(self._heap)
        return None

    def _sweep(self) -> None:
        # Rebuilding costs as much as the entries it drops, so each change pays O(1) for it.
        if len(self._heap) > 2 * len(self._planned) + _STALE_ENTRIES_TOLERATED:
            self._heap = list(self._planned.values())
            heapify(self._heap)
