"""Writes outcomes to the store in batches: the next one gathers while one is written."""

import structlog

from duetime.background import FIRST_PAUSE_SECONDS, BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import ClaimId, Settlement, claim_id_of, hand_back
from duetime.engine.meters import EngineMeters
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.ports.wakeups import WakeUps

_log = structlog.get_logger()

MAX_BATCH = 1_000
RETRY_SET_APART_SECONDS = 60.0


class Settler(BackgroundLoop):
    """Keeps each settlement until the store has answered for it.

    An absent store delays settlements; nothing loses them. A settlement that the store cannot
    write is set apart from the others and tried again every minute. The settler ends only when
    everything is written or `stop` gives up.

    `wakeups` learns of timers that are pending again, `local_wakeups` of the room that written
    outcomes leave.
    """

    name = "settler"

    def __init__(
        self,
        store: TimerStore,
        wakeups: WakeUps,
        local_wakeups: LocalWakeUps,
        clock: Clock,
        meters: EngineMeters,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._wakeups = wakeups
        self._local_wakeups = local_wakeups
        self._meters = meters
        self._gathered: list[tuple[ShardNumber, Settlement]] = []
        self._added = 0
        self._batch_size = MAX_BATCH
        self._set_apart: list[tuple[ShardNumber, Settlement]] = []
        self._retry_at_seconds = 0.0

    @property
    def unwritten(self) -> int:
        return len(self._gathered)

    @property
    def set_apart(self) -> int:
        """The number of outcomes that the store cannot write; they are tried again now and then."""
        return len(self._set_apart)

    def held(self) -> set[ClaimId]:
        """The claims whose outcomes are not written yet."""
        return {claim_id_of(settlement) for _, settlement in [*self._gathered, *self._set_apart]}

    def leases(self) -> set[tuple[ShardNumber, Epoch]]:
        """The shards of outcomes that are not written yet, with the epochs of the claims."""
        entries = [*self._gathered, *self._set_apart]
        return {(shard, settlement.epoch) for shard, settlement in entries}

    @property
    def added(self) -> int:
        """The number of outcomes up to now."""
        return self._added

    def is_past(self, added: int) -> bool:
        """Whether that many outcomes have been written, or set apart because they cannot be."""
        return self._added - len(self._gathered) >= added

    def add(self, shard: ShardNumber, settlement: Settlement) -> None:
        self._added += 1
        self._gathered.append((shard, settlement))
        self._wake.set()

    def hand_back(self, claim: Claim, cause: WaitCause, *, due_at: Instant, now: Instant) -> None:
        """Let the claim be pending again until `due_at`, without an attempt."""
        self._meters.handed_back.add(cause.value)
        self.add(claim.shard, hand_back(claim, due_at=due_at, now=now))

    async def step(self) -> None:
        if self._set_apart and self._clock.monotonic() >= self._retry_at_seconds:
            self._gather_set_apart()
        if self._gathered:
            await self._write()
        else:
            await self.wait(RETRY_SET_APART_SECONDS if self._set_apart else None)

    async def stop(self, grace_seconds: float = 0.0) -> None:
        """Write all outcomes. Raises what the store raises when the grace is over; timers without
        a written outcome stay executing in the store."""
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
            # The store may be away, or the batch may have been too large for it.
            self._batch_size = (len(batch) + 1) // 2
            raise
        except Exception:
            self._narrow_down(len(batch))
            raise
        self._batch_size = min(2 * self._batch_size, MAX_BATCH)
        del self._gathered[: len(batch)]
        for (shard, settlement), was_applied in zip(batch, applied, strict=True):
            if not was_applied:
                self._meters.refused_outcomes.add()
                _log.warning(
                    "timer.settlement_refused", namespace=settlement.namespace, id=settlement.id
                )
            # Even if refused: this may repeat a write whose answer was lost.
            if settlement.status is TimerStatus.PENDING:
                self._wakeups.announce(shard, settlement.due_at)
        self._local_wakeups.check_room()

    def _narrow_down(self, failed: int) -> None:
        """Find the settlement that cannot be written, and let the others pass."""
        if failed > 1:
            self._batch_size = (failed + 1) // 2
        else:
            self._set_apart.append(self._gathered.pop(0))
            self._retry_at_seconds = self._clock.monotonic() + RETRY_SET_APART_SECONDS

    def _gather_set_apart(self) -> None:
        self._added += len(self._set_apart)
        self._gathered.extend(self._set_apart)
        self._set_apart.clear()
