"""The finished timers of one namespace, in the order in which they finished."""

from heapq import heappop, heappush
from typing import NamedTuple

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer


class FinishedEntry(NamedTuple):
    finished_at: Instant
    timer_uuid: bytes
    key: TimerKey


class FinishedQueue:
    """A heap with lazy deletion: the entry of a timer that was redriven stays until it surfaces.

    An entry counts only while it is the very object that `_held` holds for its key, so a timer
    that finishes again counts from then on only.
    """

    def __init__(self) -> None:
        self._heap: list[FinishedEntry] = []
        self._held: dict[TimerKey, FinishedEntry] = {}

    def put(self, timer: Timer) -> None:
        entry = FinishedEntry(timer.updated_at, timer.timer_uuid, timer.key)
        self._held[timer.key] = entry
        heappush(self._heap, entry)

    def discard(self, key: TimerKey) -> None:
        del self._held[key]

    def first(self) -> FinishedEntry | None:
        """The entry that finished first; it stays in the queue."""
        while self._heap:
            entry = self._heap[0]
            if self._held.get(entry.key) is entry:
                return entry
            heappop(self._heap)
        return None
