"""Brings attempts forward that were planned by a clock that was ahead."""

from collections.abc import AsyncIterator, Sequence

import structlog
from msgspec.structs import replace

from duetime.background import BackgroundLoop
from duetime.domain.errors import TimerUnreadable
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.engine.clocks.clock_trust import JUMP_SECONDS, wall_offset_seconds
from duetime.engine.clocks.clock_watch import ClockWatch
from duetime.engine.held_leases import HeldLeases
from duetime.ports.clock import Clock
from duetime.ports.store import Position, ScanQuery, TimerStore
from duetime.ports.wakeups import WakeUps

_log = structlog.get_logger()

LOOK_SECONDS = 1.0
"""Time between two looks at the clock."""

PAGE_SIZE = 200
PAUSE_BETWEEN_PAGES_SECONDS = 0.01


class Replanner(BackgroundLoop):
    """Retries and deferrals are planned as instants of the wall clock. When that is set back, those
    planned while it was ahead would come late by as much. They get the wait that they were planned
    with, beginning now.

    Only timers whose own instant has come by the clock that was ahead can be among them, so the
    search reads no others. A node looks after its own shards, and waits for as long as its clock
    differs from the store's.
    """

    name = "replanner"

    def __init__(
        self,
        store: TimerStore,
        leases: HeldLeases,
        wakeups: WakeUps,
        clock: Clock,
        clock_watch: ClockWatch,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._leases = leases
        self._wakeups = wakeups
        self._clock_watch = clock_watch
        self._offset_seconds = self._offset_now()
        self._was_ahead_until: Instant | None = None
        """The latest time of the clock before it was set back, until the search is done."""

    async def step(self) -> None:
        await self.wait(LOOK_SECONDS)
        self._look()
        if self._was_ahead_until is None or self._clock_watch.is_skewed or self._stopping:
            return
        moved = 0
        async for timers in self._pages(self._was_ahead_until):
            for timer in timers:
                if timer.shard in self._leases.claimable:
                    moved += await self._replan(timer)
        self._was_ahead_until = None
        _log.info("timers.replanned", count=moved, why="the clock was ahead and has been set back")

    def _look(self) -> None:
        offset_seconds = self._offset_now()
        back_seconds = self._offset_seconds - offset_seconds
        self._offset_seconds = offset_seconds
        if back_seconds > JUMP_SECONDS:
            was = Instant(self._clock.now() + round(back_seconds * MICROSECONDS_PER_SECOND))
            self._was_ahead_until = max(was, self._was_ahead_until or was)

    def _offset_now(self) -> float:
        return wall_offset_seconds(self._clock.now(), self._clock.monotonic())

    async def _pages(self, until_exclusive: Instant) -> AsyncIterator[Sequence[Timer]]:
        """Pending timers whose own instant is before the given one."""
        for namespace in await self._store.namespaces():
            query = ScanQuery(
                namespace=namespace.name,
                status=TimerStatus.PENDING,
                execute_until_exclusive=until_exclusive,
                limit=PAGE_SIZE,
            )
            while timers := await self._store.scan(query):
                yield timers
                if len(timers) < PAGE_SIZE:
                    break
                await self.wait(PAUSE_BETWEEN_PAGES_SECONDS)
                last = Position(timers[-1].execute_at, timers[-1].timer_uuid)
                query = replace(query, after_exclusive=last)

    def _new_due_at(self, timer: Timer) -> Instant | None:
        """The instant for the next attempt, if its present one was planned in the future."""
        now = self._clock.now()
        planned_at = timer.updated_at
        if timer.attempts:
            # A claim that was handed back since keeps the plan that was made after the attempt.
            planned_at = max(planned_at, timer.attempts[-1].answered_at or planned_at)
        wait = max(0, timer.due_at - planned_at)
        due_at = Instant(max(timer.execute_at, now + wait))
        return due_at if planned_at > now and due_at < timer.due_at else None

    async def _replan(self, timer: Timer) -> bool:
        due_at = self._new_due_at(timer)
        if due_at is None:
            return False
        change = Change(
            updated_at=self._clock.now(),
            delivery_id=timer.delivery_id,
            only_updated_at=timer.updated_at,
            due_at=due_at,
        )
        try:
            result = await self._store.change_if_pending(timer.key, change)
        except TimerUnreadable:
            return False
        if result is None or not result.applied:
            return False
        self._wakeups.announce(timer.shard, due_at)
        return True
