"""Timers in the order of an instant: when they are due, or when they finished."""

from heapq import heapify, heappop, heappush
from typing import NamedTuple

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer

_STALE_ENTRIES_TOLERATED = 64


class QueueEntry(NamedTuple):
    """Sorts by (at, timer_uuid), which is unique, so keys are never compared."""

    at: Instant
    timer_uuid: bytes
    key: TimerKey


class TimerQueue:
    """A heap with lazy deletion: a discarded entry stays until it surfaces or is swept.

    An entry counts only while it is the very object that `_entries` holds for its key, so a timer
    that leaves and comes back cannot appear twice.
    """

    def __init__(self) -> None:
        self._heap: list[QueueEntry] = []
        self._entries: dict[TimerKey, QueueEntry] = {}

    def put(self, timer: Timer, at: Instant) -> None:
        """Place the timer at the instant, instead of any earlier place."""
        entry = QueueEntry(at, timer.timer_uuid, timer.key)
        self._entries[timer.key] = entry
        heappush(self._heap, entry)
        self._sweep()

    def discard(self, key: TimerKey) -> None:
        del self._entries[key]
        self._sweep()

    def first(self) -> QueueEntry | None:
        """The entry with the earliest instant; it stays in the queue."""
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry.key) is entry:
                return entry
            heappop(self._heap)
        return None

    def set_aside(self, until_inclusive: tuple[Instant, bytes]) -> list[QueueEntry]:
        """Take the first entries out of the order, up to the position; `put_back` undoes it."""
        aside: list[QueueEntry] = []
        while (entry := self.first()) is not None and entry[:2] <= until_inclusive:
            aside.append(heappop(self._heap))
        return aside

    def put_back(self, aside: list[QueueEntry]) -> None:
        for entry in aside:
            heappush(self._heap, entry)

    def _sweep(self) -> None:
        # Rebuilding costs as much as the entries it drops, so each change pays O(1) for it.
        if len(self._heap) > 2 * len(self._entries) + _STALE_ENTRIES_TOLERATED:
            self._heap = list(self._entries.values())
            heapify(self._heap)
