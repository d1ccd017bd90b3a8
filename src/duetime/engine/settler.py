"""Writes outcomes to the store, as many as have gathered in one batch."""

import structlog

from duetime.domain.keys import ShardNumber
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.engine.background import BackgroundLoop
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.ports.wakeups import WakeUps

_log = structlog.get_logger()

MAX_BATCH = 1_000


class Settler(BackgroundLoop):
    """While one batch is being written the next one gathers.

    A settlement stays here until the store has answered for it: a store that is away delays it,
    nothing loses it. Ends only when everything is written or `stop` gives up on a dead store.
    """

    name = "settler"

    def __init__(self, store: TimerStore, wakeups: WakeUps, clock: Clock) -> None:
        super().__init__(clock)
        self._store = store
        self._wakeups = wakeups
        self._gathered: list[tuple[ShardNumber, Settlement]] = []

    def add(self, shard: ShardNumber, settlement: Settlement) -> None:
        self._gathered.append((shard, settlement))
        self._wake.set()

    async def step(self) -> None:
        if self._gathered:
            await self._write()
        else:
            await self.wait(None)

    async def stop(self) -> None:
        await super().stop()
        while self._gathered:
            await self._write()

    async def _write(self) -> None:
        batch = self._gathered[:MAX_BATCH]
        applied = await self._store.settle([settlement for _, settlement in batch])
        del self._gathered[: len(batch)]
        for (shard, settlement), was_applied in zip(batch, applied, strict=True):
            if not was_applied:
                _log.warning(
                    "timer.settlement_refused", namespace=settlement.namespace, id=settlement.id
                )
            elif settlement.status is TimerStatus.PENDING:
                self._wakeups.announce(shard, settlement.due_at)
