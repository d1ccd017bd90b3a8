"""Claims timers from the store, just before they are due."""

import asyncio

from duetime.background import BackgroundLoop
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, plus_ms
from duetime.domain.transitions import claim_id_of
from duetime.engine.claim_progress import ClaimProgress
from duetime.engine.deliveries import Deliveries
from duetime.engine.dispatcher import MAX_HELD, Dispatcher
from duetime.engine.held_leases import HeldLeases
from duetime.engine.meters import EngineMeters
from duetime.engine.options import EngineOptions
from duetime.engine.wait_log import WaitLog
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.store import ClaimBatch, Leases, TimerStore

LONGEST_WAIT_SECONDS = 1.0
"""Time after which the wall clock is read again, because it may have jumped."""


class DueReader(BackgroundLoop):
    """Claims the timers due within the horizon, as many as the dispatcher has room for.

    A claim begins where the one before ended. A timer that is written with an earlier instant is
    announced, and found by the next claim; `StragglerFinder` finds those whose announcement got
    lost.

    In between it sleeps until the earliest of: the next due instant less the horizon, an
    announcement of an earlier instant, the fallback poll.
    """

    name = "due_reader"

    def __init__(
        self,
        store: TimerStore,
        leases: HeldLeases,
        dispatcher: Dispatcher,
        deliveries: Deliveries,
        wakeups: LocalWakeUps,
        progress: ClaimProgress,
        clock: Clock,
        options: EngineOptions,
        meters: EngineMeters,
        wait_log: WaitLog,
    ) -> None:
        super().__init__(clock, wakeups.woken)
        self._wait_log = wait_log
        self._store = store
        self._leases = leases
        self._dispatcher = dispatcher
        self._deliveries = deliveries
        self._wakeups = wakeups
        self._progress = progress
        self._meters = meters
        self._horizon_ms = options.horizon_ms
        self._poll_seconds = options.poll_seconds
        self._batch_size = min(options.batch_size, MAX_HELD)
        # A claim costs a commit, however small: wait for room that is worth one.
        self._smallest_batch = (self._batch_size + 1) // 2
        self._claims_may_be_lost = False
        self._poll_asked = False
        self.between_claims = asyncio.Lock()
        """Held while a claim is under way."""

    def poll_now(self) -> None:
        """Look at the store at once, for lost claims and stragglers too."""
        self._poll_asked = True
        self._progress.doubted.set()
        self.wake()

    async def step(self) -> None:
        if not (self._leases.claimable and self._leases.are_valid):
            await self.wait(LONGEST_WAIT_SECONDS)
            return
        limit = min(self._dispatcher.room(), self._batch_size)
        if limit < self._smallest_batch:
            self._wakeups.wake_when(lambda: self._dispatcher.room() >= self._smallest_batch)
            await self.wait(LONGEST_WAIT_SECONDS)
            return
        async with self.between_claims:
            batch = await self._claim(limit)
        if len(batch.claims) < limit:
            await self._sleep_until_due(batch.next_due_at)

    async def _claim(self, limit: int) -> ClaimBatch:
        if self._claims_may_be_lost or self._poll_asked or self._deliveries.has_dropped:
            # Reset before the search: a shard taken meanwhile asks for another poll.
            self._poll_asked = False
            await self._find_lost_claims(self._leases.claimable)
        # Read at the same moment as the announcements: one of a shard that was taken during the
        # search is for a claim under these leases.
        leases = self._leases.claimable
        now = self._clock.now()
        self._wait_log.asks_for_claims(now, self._clock.monotonic())
        until = plus_ms(now, self._horizon_ms)
        start = self._progress.start(leases, until, self._wakeups.take_announced())
        # Set before the claim: timers announced from now on may be written after its snapshot.
        self._wakeups.claimed_until = until
        self._claims_may_be_lost = True
        began_seconds = self._clock.monotonic()
        batch = await self._store.claim_due(
            leases, now=now, until_inclusive=until, limit=limit, start=start
        )
        self._meters.read_duration.observe(self._clock.monotonic() - began_seconds)
        self._meters.read_at_seconds = now / MICROSECONDS_PER_SECOND
        self._wait_log.got_claims(self._clock.now())
        self._dispatcher.accept(batch.claims)
        self._claims_may_be_lost = False
        self._progress.claimed(leases, until, batch)
        return batch

    async def find_lost_claims(self) -> None:
        """Deliver claims that may have been made unnoticed. Call this between claims."""
        if self._claims_may_be_lost or self._deliveries.has_dropped:
            await self._find_lost_claims(self._leases.claimable)

    async def _find_lost_claims(self, leases: Leases) -> None:
        """Deliver claims that are executing in the store and unknown here: a claim that failed
        may have taken place all the same, and the lease of a dropped one may be ours again.

        The held claims are listed first: a claim settled meanwhile may still be read as
        executing.
        """
        # Reset by the claim that follows: if this fails, it has to be done again.
        self._claims_may_be_lost = True
        self._deliveries.has_dropped = False
        held = self._dispatcher.held()
        claims = await self._store.executing(leases)
        self._dispatcher.accept([claim for claim in claims if claim_id_of(claim) not in held])

    async def _sleep_until_due(self, next_due_at: Instant | None) -> None:
        poll_at_seconds = self._clock.monotonic() + self._poll_seconds
        while not (self._stopping or self._poll_asked):
            due_at = _earlier(next_due_at, self._wakeups.announced_at)
            seconds = poll_at_seconds - self._clock.monotonic()
            if due_at is not None:
                claim_at = plus_ms(due_at, -self._horizon_ms)
                seconds = min(seconds, (claim_at - self._clock.now()) / MICROSECONDS_PER_SECOND)
            if seconds <= 0:
                return
            self._wakeups.sleeping_for = due_at
            await self.wait(min(seconds, LONGEST_WAIT_SECONDS))


def _earlier(one: Instant | None, other: Instant | None) -> Instant | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
