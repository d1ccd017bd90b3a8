"""A clock that moves only when a test moves it."""

import asyncio
import math
from heapq import heappop, heappush

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant

START_AT = Instant(1_893_456_000 * MICROSECONDS_PER_SECOND)
"""2030-01-01T00:00:00Z."""


class VirtualClock:
    """Implements the clock port; wall time and monotonic time are controlled separately.

    Whole microseconds are counted, so that many small steps add up exactly.
    """

    def __init__(self, start_at: Instant = START_AT) -> None:
        self._wall = start_at
        self._elapsed = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sleeps = 0
        self._watchers: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> Instant:
        return self._wall

    def monotonic(self) -> float:
        return self._elapsed / MICROSECONDS_PER_SECOND

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has been advanced by `seconds`.

        Without anything to wait for, the other tasks still get their turn.
        """
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        duration = math.ceil(round(seconds * MICROSECONDS_PER_SECOND, 3))
        if duration <= 0:
            loop.call_soon(_wake, woken)
        else:
            self._sleeps += 1
            heappush(self._sleepers, (self._elapsed + duration, self._sleeps, woken))
            self._notify_watchers()
        await woken

    def advance(self, seconds: float) -> None:
        """Move both clocks on and wake, in the order of their deadlines, all tasks whose sleep is
        over. They run when the caller next awaits, and then see the new time: to let each see
        its own deadline, advance by `seconds_until_wake` at a time.
        """
        step = round(seconds * MICROSECONDS_PER_SECOND)
        if step < 0:
            raise ValueError("time only moves on; use jump_wall to set the wall clock back")
        self._elapsed += step
        self._wall = Instant(self._wall + step)
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _wake(heappop(self._sleepers)[2])

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back with a negative number. No sleeper wakes."""
        self._wall = Instant(self._wall + round(seconds * MICROSECONDS_PER_SECOND))

    @property
    def sleeping(self) -> int:
        """The number of tasks that sleep on this clock."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    @property
    def seconds_until_wake(self) -> float | None:
        """The time by which to advance to wake the next sleeper; None without sleepers."""
        while self._sleepers and self._sleepers[0][2].done():
            heappop(self._sleepers)
        if not self._sleepers:
            return None
        return (self._sleepers[0][0] - self._elapsed) / MICROSECONDS_PER_SECOND

    async def wait_for_sleepers(self, count: int = 1) -> None:
        """Return once at least `count` tasks sleep on this clock."""
        if self.sleeping < count:
            reached = asyncio.get_running_loop().create_future()
            self._watchers.append((count, reached))
            await reached

    def _notify_watchers(self) -> None:
        waiting = []
        sleeping = self.sleeping
        for count, reached in self._watchers:
            if sleeping >= count:
                _wake(reached)
            else:
                waiting.append((count, reached))
        self._watchers = waiting


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
