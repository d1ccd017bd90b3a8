"""Brings the timers of resumed endpoints forward, so that they are sent at once."""

import asyncio
from itertools import islice

from duetime.background import BackgroundLoop
from duetime.domain.errors import TimerUnreadable
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.engine.lanes.paused_endpoints import PausedEndpoints, PutOff
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.ports.wakeups import WakeUps

AT_ONCE = 32
"""Timers that are changed side by side."""

RETRY_SECONDS = 0.05
"""Pause before timers are tried again whose hand-back was not written yet."""


class Resumer(BackgroundLoop):
    """Works off `PausedEndpoints.resumed`. An end of the process loses these notes; then the timers
    return at the end of their deferrals."""

    name = "resumer"

    def __init__(
        self, store: TimerStore, paused: PausedEndpoints, wakeups: WakeUps, clock: Clock
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._paused = paused
        self._wakeups = wakeups

    async def step(self) -> None:
        resumed = self._paused.resumed
        if not resumed:
            await self.wait(None)
            return
        some = list(islice(resumed, AT_ONCE))
        unwritten = await asyncio.gather(*map(self._bring_forward, some))
        for _ in some:
            resumed.popleft()
        again = [each for each, is_unwritten in zip(some, unwritten, strict=True) if is_unwritten]
        if again:
            resumed.extend(again)
            await self.wait(RETRY_SECONDS)

    async def _bring_forward(self, put_off: PutOff) -> bool:
        """Whether this has to be tried again."""
        if put_off.noted_until_seconds <= self._clock.monotonic():
            return False
        change = Change(
            updated_at=self._clock.now(),
            delivery_id=put_off.delivery_id,
            only_firing=put_off.delivery_id,
            due_at=put_off.due_at,
        )
        try:
            result = await self._store.change_if_pending(put_off.key, change)
        except TimerUnreadable:
            return False
        if result is None:
            return False
        if result.applied:
            self._wakeups.announce(put_off.shard, put_off.due_at)
        return (
            result.timer.status is TimerStatus.EXECUTING
            and result.timer.delivery_id == put_off.delivery_id
        )
