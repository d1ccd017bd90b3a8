"""Writes outcomes to the store, as many as have gathered in one batch."""

from collections.abc import Callable

import structlog

from duetime.background import FIRST_PAUSE_SECONDS, BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import ShardNumber
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.engine.claim_id import ClaimName, name_of
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.ports.wakeups import WakeUps

_log = structlog.get_logger()

MAX_BATCH = 1_000
RETRY_SET_APART_SECONDS = 60.0


class Settler(BackgroundLoop):
    """While one batch is being written the next one gathers.

    A settlement stays here until the store has answered for it: a store that is away delays it,
    nothing loses it. One that the store cannot write is set apart from the others and tried
    again every minute. Ends only when everything is written or `stop` gives up.
    """

    name = "settler"

    def __init__(self, store: TimerStore, wakeups: WakeUps, clock: Clock) -> None:
        super().__init__(clock)
        self._store = store
        self._wakeups = wakeups
        self._gathered: list[tuple[ShardNumber, Settlement]] = []
        self._batch_size = MAX_BATCH
        self._set_apart: list[tuple[ShardNumber, Settlement]] = []
        self._retry_at_seconds = 0.0
        self.on_written: Callable[[], None] = lambda: None
        """Called after each batch."""

    @property
    def unwritten(self) -> int:
        return len(self._gathered)

    def held(self) -> set[ClaimName]:
        """The claims whose outcomes are not written yet."""
        return {name_of(settlement) for _, settlement in [*self._gathered, *self._set_apart]}

    def busy_shards(self) -> set[ShardNumber]:
        return {shard for shard, _ in [*self._gathered, *self._set_apart]}

    def add(self, shard: ShardNumber, settlement: Settlement) -> None:
        self._gathered.append((shard, settlement))
        self._wake.set()

    async def step(self) -> None:
        if self._set_apart and self._clock.monotonic() >= self._retry_at_seconds:
            self._gather_set_apart()
        if self._gathered:
            await self._write()
        else:
            await self.wait(RETRY_SET_APART_SECONDS if self._set_apart else None)

    async def stop(self, grace_seconds: float = 0.0) -> None:
        """Write what has gathered. Raises what the store raises when the grace is over; what
        is left then stays executing in the store."""
        await super().stop()
        self._gather_set_apart()
        give_up_at_seconds = self._clock.monotonic() + grace_seconds
        while self._gathered:
            try:
                await self._write()
            except Exception:
                if self._clock.monotonic() >= give_up_at_seconds:
                    raise
                self._gather_set_apart()
                await self._clock.sleep(FIRST_PAUSE_SECONDS)
        if self._set_apart:
            raise StoreUnavailable(f"{len(self._set_apart)} outcomes could not be written")

    async def _write(self) -> None:
        batch = self._gathered[: self._batch_size]
        try:
            applied = await self._store.settle([settlement for _, settlement in batch])
        except StoreUnavailable:
            # It may be away, or it may have been too much for it at once.
            self._batch_size = (len(batch) + 1) // 2
            raise
        except Exception:
            self._narrow_down(len(batch))
            raise
        self._batch_size = min(2 * self._batch_size, MAX_BATCH)
        del self._gathered[: len(batch)]
        for (shard, settlement), was_applied in zip(batch, applied, strict=True):
            if not was_applied:
                _log.warning(
                    "timer.settlement_refused", namespace=settlement.namespace, id=settlement.id
                )
            # Even if refused: it may be the repeat of a write whose answer got lost.
            if settlement.status is TimerStatus.PENDING:
                self._wakeups.announce(shard, settlement.due_at)
        self.on_written()

    def _narrow_down(self, failed: int) -> None:
        """Something in the first settlements cannot be written: find it, let the others pass."""
        if failed > 1:
            self._batch_size = (failed + 1) // 2
        else:
            self._set_apart.append(self._gathered.pop(0))
            self._retry_at_seconds = self._clock.monotonic() + RETRY_SET_APART_SECONDS

    def _gather_set_apart(self) -> None:
        self._gathered.extend(self._set_apart)
        self._set_apart.clear()
