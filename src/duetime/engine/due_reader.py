"""Learns from the store what is due, just in time."""

import asyncio

from duetime.background import BackgroundLoop
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, plus_ms
from duetime.domain.keys import ShardNumber
from duetime.engine.claim_id import name_of
from duetime.engine.cluster.held_leases import HeldLeases
from duetime.engine.dispatcher import MAX_HELD, Dispatcher
from duetime.ports.clock import Clock
from duetime.ports.store import ClaimBatch, Leases, TimerStore

LONGEST_WAIT_SECONDS = 1.0
"""The wall clock is looked at again at least this often, for it may have jumped."""

LOOK_BACK_SECONDS = 60.0
"""How far before what is known to be claimed a claim begins to look. What was claimed before may
be in the store's way for a while, so it does not begin at the beginning. Timers that are written
when they are due for longer already are announced, or found by the next poll."""


class DueReader(BackgroundLoop):
    """Claims what is due within the horizon, as much as the dispatcher has room for.

    In between it sleeps until the earliest of: the next due instant less the horizon, an
    announcement of something sooner, the fallback poll.
    """

    name = "due_reader"

    def __init__(
        self,
        store: TimerStore,
        leases: HeldLeases,
        clock: Clock,
        *,
        horizon_ms: float,
        poll_seconds: float,
        batch_size: int,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._leases = leases
        self._horizon_ms = horizon_ms
        self._poll_seconds = poll_seconds
        self._batch_size = min(batch_size, MAX_HELD)
        # A claim costs a commit, however small: wait for room that is worth one.
        self._smallest_batch = (self._batch_size + 1) // 2
        self._announced_at: Instant | None = None
        self._sleeping_for: Instant | None = None
        self._dispatcher: Dispatcher | None = None
        self._claims_may_be_lost = False
        self._poll_asked = False
        self._complete_until: Instant | None = None
        self._look_at_all_seconds = 0.0
        self.between_claims = asyncio.Lock()
        """Held while a claim is under way."""

    def feed(self, dispatcher: Dispatcher) -> None:
        """Name the dispatcher that gets the claims. Called once, before `start`."""
        self._dispatcher = dispatcher

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        """Implements the wake-ups port for what happens in this process."""
        if self._announced_at is None or due_at < self._announced_at:
            self._announced_at = due_at
            since = self._since()
            if since is not None and due_at < since:
                self._complete_until = None
            if self._sleeping_for is None or due_at < self._sleeping_for:
                self._wake.set()

    def poll_now(self) -> None:
        """Look at the store without waiting for anything, for lost claims too."""
        self._poll_asked = True
        self._complete_until = None
        self.wake()

    async def step(self) -> None:
        dispatcher = self._dispatcher
        assert dispatcher is not None
        if not (self._leases.claimable and self._leases.are_valid):
            await self.wait(LONGEST_WAIT_SECONDS)
            return
        limit = min(dispatcher.room(), self._batch_size)
        if limit < self._smallest_batch:
            dispatcher.call_when_room(self._smallest_batch, self.wake)
            await self.wait(LONGEST_WAIT_SECONDS)
            return
        async with self.between_claims:
            batch = await self._claim(dispatcher, limit)
        if len(batch.claims) < limit:
            await self._sleep_until_due(batch.next_due_at)

    async def _claim(self, dispatcher: Dispatcher, limit: int) -> ClaimBatch:
        leases = self._leases.claimable
        if self._claims_may_be_lost or self._poll_asked or dispatcher.has_dropped:
            await self._find_lost_claims(dispatcher, leases)
        if self._clock.monotonic() >= self._look_at_all_seconds:
            self._complete_until = None
        self._announced_at = None
        self._poll_asked = False
        now = self._clock.now()
        until, since = plus_ms(now, self._horizon_ms), self._since()
        self._claims_may_be_lost = True
        batch = await self._store.claim_due(
            leases, now=now, until_inclusive=until, limit=limit, since_inclusive=since
        )
        self._claims_may_be_lost = False
        dispatcher.accept(batch.claims)
        if len(batch.claims) < limit and (batch.next_due_at is None or batch.next_due_at > until):
            self._is_complete(until, looked_at_all=since is None)
        return batch

    def _since(self) -> Instant | None:
        """The instant from which to look; None for all there is."""
        complete = self._complete_until
        return None if complete is None else plus_ms(complete, -LOOK_BACK_SECONDS * 1_000)

    def _is_complete(self, until: Instant, *, looked_at_all: bool) -> None:
        """All that was due until then is claimed, unless it was written meanwhile."""
        if looked_at_all:
            self._look_at_all_seconds = self._clock.monotonic() + self._poll_seconds
        elif self._complete_until is None:
            # It was announced, while we were looking, that there is more behind us.
            return
        since = plus_ms(until, -LOOK_BACK_SECONDS * 1_000)
        announced = self._announced_at
        if not self._poll_asked and (announced is None or announced >= since):
            self._complete_until = until

    async def _find_lost_claims(self, dispatcher: Dispatcher, leases: Leases) -> None:
        """A claim that failed may have taken place all the same, and one that was dropped may
        be ours again; then its timers wait for us.

        What is held is asked first: what is settled meanwhile may still be read as executing.
        """
        # Until all of them were found: this may fail, and then has to be done again.
        self._claims_may_be_lost = True
        dispatcher.has_dropped = False
        held = dispatcher.held()
        claims = await self._store.executing(leases)
        dispatcher.accept([claim for claim in claims if name_of(claim) not in held])

    async def _sleep_until_due(self, next_due_at: Instant | None) -> None:
        poll_at_seconds = self._clock.monotonic() + self._poll_seconds
        while not (self._stopping or self._poll_asked):
            due_at = _earlier(next_due_at, self._announced_at)
            seconds = poll_at_seconds - self._clock.monotonic()
            if due_at is not None:
                claim_at = plus_ms(due_at, -self._horizon_ms)
                seconds = min(seconds, (claim_at - self._clock.now()) / MICROSECONDS_PER_SECOND)
            if seconds <= 0:
                return
            self._sleeping_for = due_at
            await self.wait(min(seconds, LONGEST_WAIT_SECONDS))


def _earlier(one: Instant | None, other: Instant | None) -> Instant | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
