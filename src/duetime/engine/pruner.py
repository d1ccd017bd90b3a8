"""Forgets finished timers when their retention is over."""

from collections.abc import Callable

import structlog

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.engine.background import BackgroundLoop
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore

_log = structlog.get_logger()

BATCH_SIZE = 500
PAUSE_BETWEEN_BATCHES_SECONDS = 0.05
PAUSE_BETWEEN_ROUNDS_SECONDS = 60.0


class Pruner(BackgroundLoop):
    """Small batches with pauses in between, so that nobody waits for a long lock."""

    name = "pruner"

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        retention_seconds: float,
        is_clock_wrong: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._is_clock_wrong = is_clock_wrong
        self._retention = round(retention_seconds * MICROSECONDS_PER_SECOND)

    async def step(self) -> None:
        if self._is_clock_wrong():
            # A clock that is ahead would forget what others still want to keep.
            await self.wait(PAUSE_BETWEEN_ROUNDS_SECONDS)
            return
        finished_before = self._clock.now() - self._retention
        # Down to a whole step, which a store that keeps history by the step drops in one go.
        finished_before -= finished_before % self._store.capabilities.history_step
        pruned = await self._store.prune(finished_before=Instant(finished_before), limit=BATCH_SIZE)
        if pruned:
            _log.debug("timers.pruned", count=pruned)
        await self.wait(
            PAUSE_BETWEEN_BATCHES_SECONDS if pruned == BATCH_SIZE else PAUSE_BETWEEN_ROUNDS_SECONDS
        )
