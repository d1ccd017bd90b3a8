"""Holds claims for their last milliseconds and sends each at its instant."""

import asyncio
from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, plus_ms
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Claim
from duetime.domain.transitions import ClaimId, claim_id_of, not_before
from duetime.engine.deliveries import Deliveries
from duetime.engine.lanes.lanes import Lanes
from duetime.engine.lanes.slots import Slots, size_of
from duetime.engine.options import EngineOptions
from duetime.engine.settler import MAX_BATCH, Settler
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination

MAX_HELD = 2_048
"""Claims held in memory that are neither sent nor in a lane that stands still."""

MAX_HELD_BYTES = 16 * 2**20
"""Payload bytes of claims that are not due yet. Beyond this, no more claims are made ahead."""

FAR_BEYOND_HORIZON_MS = 1_000.0
"""Distance beyond the horizon that shows that the wall clock was set back after the claim."""

LONGEST_TIMER_SECONDS = 1.0
"""Time after which the wall clock is read again, because it may have jumped."""


class Dispatcher:
    """Takes claims from the due reader and passes each to its lane when it is due.

    Memory is bounded by the claims held and in flight; a backlog stays in the store.
    """

    def __init__(
        self,
        destination: Destination,
        deliveries: Deliveries,
        lanes: Lanes,
        settler: Settler,
        slots: Slots,
        clock: Clock,
        wakeups: LocalWakeUps,
        options: EngineOptions,
    ) -> None:
        self._destination = destination
        self._deliveries = deliveries
        self._lanes = lanes
        self._settler = settler
        self._slots = slots
        self._clock = clock
        self._wakeups = wakeups
        self._farthest_ms = options.horizon_ms + FAR_BEYOND_HORIZON_MS
        self._upcoming: list[tuple[Instant, int, Claim]] = []
        self._upcoming_bytes = 0
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False

    @property
    def in_flight(self) -> int:
        return self._slots.used

    def room(self) -> int:
        """The number of claims that can be held in addition now."""
        # One batch of outcomes may always gather. If more wait, the store writes outcomes more
        # slowly than it hands out claims: then claims have to wait.
        if self._upcoming_bytes >= MAX_HELD_BYTES:
            return 0
        unwritten = max(0, self._settler.unwritten - MAX_BATCH)
        return max(0, MAX_HELD - len(self._upcoming) - self._slots.waiting - unwritten)

    def held(self) -> set[ClaimId]:
        """All claims in this process: not yet sent, under way, cut off, or not yet settled."""
        claims = [claim for _, _, claim in self._upcoming]
        claims.extend(self._lanes.waiting_claims())
        claims.extend(self._deliveries.claims)
        claims.extend(self._deliveries.abandoned)
        return {claim_id_of(claim) for claim in claims} | self._settler.held()

    def leases(self) -> set[tuple[ShardNumber, Epoch]]:
        """The shards and epochs of all claims in this process, except for those that wait to be
        settled."""
        claims = [claim for _, _, claim in self._upcoming]
        claims.extend(self._lanes.waiting_claims())
        claims.extend(self._deliveries.claims)
        return {(claim.shard, claim.epoch) for claim in claims}

    def give_back(self, shards: Collection[ShardNumber]) -> None:
        """Hand back the claims of these shards that were not sent."""
        unsent = [claim for _, _, claim in self._upcoming if claim.shard in shards]
        if unsent:
            self._upcoming = [entry for entry in self._upcoming if entry[2].shard not in shards]
            heapify(self._upcoming)
            self._upcoming_bytes -= sum(map(size_of, unsent))
        unsent.extend(self._lanes.take_waiting(shards))
        self._hand_back_unsent(unsent, self._clock.now())

    def accept(self, claims: Sequence[Claim]) -> None:
        now = self._clock.now()
        if self._stopping:
            # Found only now, by a search for lost claims. Nobody would wait for their attempts.
            self._hand_back_unsent(claims, now)
            return
        due, paused = [], self._lanes.paused
        for claim in claims:
            # A claim for a paused endpoint goes back at once, so that it can be canceled.
            if claim.due_at <= now or (paused and self.endpoint_of(claim) in paused):
                due.append(claim)
            else:
                self._sequence += 1
                heappush(self._upcoming, (claim.due_at, self._sequence, claim))
                self._upcoming_bytes += size_of(claim)
        self._send(due, now)
        self._set_timer(now)

    async def stop(self, grace_seconds: float) -> None:
        """Hand back the claims that were not sent; let the others finish within the grace."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        self._lanes.stop()
        unsent = [claim for _, _, claim in self._upcoming]
        self._upcoming.clear()
        unsent.extend(self._lanes.take_waiting())
        self._hand_back_unsent(unsent, self._clock.now())
        await self._deliveries.stop(grace_seconds)

    def _send(self, claims: Sequence[Claim], now: Instant) -> None:
        now_seconds = self._clock.monotonic()
        for claim in claims:
            self._lanes.accept(self.endpoint_of(claim), claim, now, now_seconds)

    def endpoint_of(self, claim: Claim) -> str:
        try:
            return self._destination.endpoint_of(claim)
        except Exception:
            # The attempt will fail as well and say why; the claims beside it must not suffer.
            return "unknown"

    def _set_timer(self, now: Instant) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._upcoming and not self._stopping:
            delay = (self._upcoming[0][0] - now) / MICROSECONDS_PER_SECOND
            self._timer = asyncio.get_running_loop().call_later(
                min(max(delay, 0.0), LONGEST_TIMER_SECONDS), self._send_upcoming
            )

    def _send_upcoming(self) -> None:
        now = self._clock.now()
        due = []
        while self._upcoming and self._upcoming[0][0] <= now:
            due.append(heappop(self._upcoming)[2])
            self._upcoming_bytes -= size_of(due[-1])
        self._send(due, now)
        self._hand_back_far_ones(now)
        self._timer = None
        self._set_timer(now)
        self._wakeups.check_room()

    def _hand_back_far_ones(self, now: Instant) -> None:
        """After the wall clock was set back, hand back claims that are now far from due: they would
        leave no room for timers that are due before them."""
        if self._upcoming and self._upcoming[0][0] > plus_ms(now, self._farthest_ms):
            for _, _, claim in self._upcoming:
                self._settler.hand_back(claim, WaitCause.CLOCK, due_at=not_before(claim), now=now)
            self._upcoming.clear()
            self._upcoming_bytes = 0

    def _hand_back_unsent(self, claims: Sequence[Claim], now: Instant) -> None:
        for claim in claims:
            self._settler.hand_back(claim, WaitCause.HANDOVER, due_at=claim.due_at, now=now)
