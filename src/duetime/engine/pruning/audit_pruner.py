"""Forgets entries of the audit log when their retention is over."""

import structlog

from duetime.background import BackgroundLoop
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.engine.clocks.clock_trust import ClockTrust
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.ports.store import TimerStore

_log = structlog.get_logger()

BATCH_SIZE = 500
PAUSE_BETWEEN_BATCHES_SECONDS = 0.1
PAUSE_BETWEEN_ROUNDS_SECONDS = 60.0


class AuditPruner(BackgroundLoop):
    """Forgets small batches with pauses in between, so that nothing waits for a long lock. Every
    node may do so: an entry can be forgotten once only.

    Nothing is forgotten while the clock is in doubt, as with finished timers (`Pruner`).
    """

    name = "audit-pruner"

    def __init__(
        self, store: TimerStore, audit: SecurityStore, clock: Clock, retention_seconds: float
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._audit = audit
        self._retention_seconds = retention_seconds
        self._clock_trust: ClockTrust | None = None

    async def step(self) -> None:
        now, monotonic_seconds = self._clock.now(), self._clock.monotonic()
        if self._clock_trust is None:
            believed_at = await self._store.clock_believed_at()
            self._clock_trust = ClockTrust(now, monotonic_seconds, believed_at)
        forgotten = 0
        if self._clock_trust.believes(now, monotonic_seconds):
            forgotten = await self._audit.forget_audit(
                before_exclusive=Instant(
                    now - round(self._retention_seconds * MICROSECONDS_PER_SECOND)
                ),
                limit=BATCH_SIZE,
            )
        if forgotten:
            _log.debug("audit.pruned", entries=forgotten)
        await self.wait(
            PAUSE_BETWEEN_BATCHES_SECONDS
            if forgotten >= BATCH_SIZE
            else PAUSE_BETWEEN_ROUNDS_SECONDS
        )
