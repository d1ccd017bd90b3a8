"""Deletes finished timers when their retention is over."""

from collections import deque

import structlog

from duetime.background import BackgroundLoop
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.engine.clocks.clock_trust import ClockTrust
from duetime.engine.clocks.clock_watch import ClockWatch
from duetime.engine.pruning.retentions import Retention, Retentions
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore

_log = structlog.get_logger()

BATCH_SIZE = 500
PAUSE_BETWEEN_BATCHES_SECONDS = 0.05
PAUSE_BETWEEN_ROUNDS_SECONDS = 60.0


class Pruner(BackgroundLoop):
    """Prunes small batches with pauses in between, so that nothing waits for a long lock. Takes
    namespaces in turn, so that none waits for a large one.

    `retention_seconds` is for namespaces without a retention of their own; None means for ever.
    The options of namespaces are read from the store directly before each batch: the options
    known to this process may be old, and pruned timers do not come back.

    Nothing is pruned while the clock is in doubt: because it differs from the store's, because it
    jumped ahead, or because it is far ahead of the last believed instant when the process starts.
    That is kept in the store once a round: the timers there may come from a clock that was wrong.
    """

    name = "pruner"

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        retention_seconds: float | None,
        clock_watch: ClockWatch,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._clock_watch = clock_watch
        self._retentions = Retentions(retention_seconds)
        self._left: deque[str | None] = deque()
        """Namespaces still to prune a batch of in this pass; None for all together."""
        self._again: list[str | None] = []
        self._asked_seconds = 0.0
        self._clock_trust: ClockTrust | None = None

    async def step(self) -> None:
        if self._clock_trust is None:
            believed_at = await self._believed_at()
            self._clock_trust = ClockTrust(self._clock.now(), self._clock.monotonic(), believed_at)
        if not self._is_right(self._clock.now()):
            await self.wait(PAUSE_BETWEEN_ROUNDS_SECONDS)
            return
        if not self._left:
            await self._begin_pass()
        if self._left:
            namespace = self._left.popleft()
            if await self._prune(namespace) >= BATCH_SIZE:
                self._again.append(namespace)
        await self.wait(
            PAUSE_BETWEEN_BATCHES_SECONDS
            if self._left or self._again
            else PAUSE_BETWEEN_ROUNDS_SECONDS
        )

    def _is_right(self, now: Instant) -> bool:
        """Whether the clock may be believed: one that is ahead would delete timers too early."""
        assert self._clock_trust is not None
        # Asked in any case, because a jump shows in the difference from the last look.
        is_believed = self._clock_trust.believes(now, self._clock.monotonic())
        return is_believed and not self._clock_watch.is_skewed

    async def _believed_at(self) -> Instant | None:
        """The instant that this start is compared with. In a new store there is nothing to prune
        too early, so that any instant will do."""
        believed_at = await self._store.clock_believed_at()
        if believed_at is None:
            counts = await self._store.counts()
            if not any(count for status, count in counts.items() if status.is_finished):
                return self._clock.now()
        return believed_at

    async def _begin_pass(self) -> None:
        """Visit the namespaces with more to prune again, or all of them once a round is over."""
        now_seconds = self._clock.monotonic()
        again, self._again = self._again, []
        if not again or now_seconds - self._asked_seconds >= PAUSE_BETWEEN_ROUNDS_SECONDS:
            self._asked_seconds = now_seconds
            await self._mark_believed()
            await self._retentions.refresh(self._store)
            again = [retention.namespace for retention in self._retentions.all()]
        self._left = deque(again)

    async def _mark_believed(self) -> None:
        now = self._clock.now()
        if self._is_right(now):
            await self._store.mark_clock_believed(now)

    async def _prune(self, namespace: str | None) -> int:
        await self._retentions.refresh(self._store)
        retention = self._retentions.of(namespace)
        return 0 if retention is None else await self._prune_batch(retention)

    async def _prune_batch(self, retention: Retention) -> int:
        now = self._clock.now()
        if not self._is_right(now):
            return 0
        finished_before = now - round(retention.seconds * MICROSECONDS_PER_SECOND)
        if retention.namespace is None:
            # Rounded down to a whole step, because stores drop whole steps at once.
            finished_before -= finished_before % self._store.capabilities.history_step
        pruned = await self._store.prune(
            finished_before=Instant(finished_before),
            limit=BATCH_SIZE,
            namespace=retention.namespace,
        )
        if pruned:
            _log.debug("timers.pruned", namespace=retention.namespace, count=pruned)
        return pruned
