"""Holds claims for their last milliseconds and delivers each at its instant."""

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from heapq import heapify, heappop, heappush

import structlog
import uuid_utils

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, format_instant, plus_ms
from duetime.domain.keys import ShardNumber
from duetime.domain.outcome import Failed, Outcome
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import Settlement, hand_back, settlement_of
from duetime.engine.claim_id import ClaimName, name_of
from duetime.engine.cluster.held_leases import HeldLeases
from duetime.engine.lanes.deferrals import returning_at
from duetime.engine.lanes.lane import GROW_AFTER_SECONDS, Lane
from duetime.engine.lanes.lanes import Lanes
from duetime.engine.lanes.quota import Quotas
from duetime.engine.lanes.slots import Slots, size_of
from duetime.engine.lateness import Lateness
from duetime.engine.settler import MAX_BATCH, Settler
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.endpoints import EndpointStatus

_log = structlog.get_logger()

MAX_HELD = 2_048
"""Claims held in memory that are neither sent nor in a lane that stands still."""

MAX_HELD_BYTES = 16 * 2**20
"""Of claims that are not due yet; more than one batch of large ones is not claimed ahead."""

FAR_BEYOND_HORIZON_MS = 1_000.0
"""A claim so far beyond the horizon was made before the wall clock was set back."""

LONGEST_TIMER_SECONDS = 1.0
"""The wall clock is looked at again at least this often, for it may have jumped."""


class Dispatcher:
    """From claim to outcome.

    Nothing is sent before its instant by the wall clock: event loops fire their timers up to
    half a millisecond early, so the clock is read again before sending. Nothing is sent under a
    lease that may have run out: such a claim is dropped, and either another node recovers it or
    it is found again when the lease turns out to be still ours. Memory is bounded by what is
    held and in flight; a backlog stays in the store.
    """

    def __init__(
        self,
        destination: Destination,
        settler: Settler,
        leases: HeldLeases,
        clock: Clock,
        slots: Slots,
        quotas: Quotas,
        *,
        horizon_ms: float,
    ) -> None:
        self._destination = destination
        self._settler = settler
        self._leases = leases
        self._clock = clock
        self._slots = slots
        self._farthest_ms = horizon_ms + FAR_BEYOND_HORIZON_MS
        self._upcoming: list[tuple[Instant, int, Claim]] = []
        self._upcoming_bytes = 0
        self._sequence = 0
        self._lanes = Lanes(slots, quotas, clock, self._start)
        self._deliveries: dict[asyncio.Task[None], Claim] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._caretaker: asyncio.TimerHandle | None = None
        self._stopping = False
        self._on_room: Callable[[], None] | None = None
        self._room_wanted = 0
        settler.on_written = self._tell_of_room
        self.lateness = Lateness()
        self.has_dropped = False
        """Claims were dropped since this was last set to False."""

    @property
    def in_flight(self) -> int:
        return self._slots.used

    @property
    def open_endpoints(self) -> int:
        return self._lanes.open_endpoints(self._clock.monotonic())

    def endpoints(self) -> list[EndpointStatus]:
        return self._lanes.statuses(self._clock.monotonic())

    def room(self) -> int:
        """How many more claims can be held now."""
        # One batch of outcomes may always gather. More of them means that the store is slower
        # at writing them than at handing out claims: then claims have to wait.
        if self._upcoming_bytes >= MAX_HELD_BYTES:
            return 0
        unwritten = max(0, self._settler.unwritten - MAX_BATCH)
        return max(0, MAX_HELD - len(self._upcoming) - self._slots.waiting - unwritten)

    def held(self) -> set[ClaimName]:
        """All claims that are here: not yet sent, under way, or not yet settled."""
        claims = [claim for _, _, claim in self._upcoming]
        claims.extend(self._lanes.waiting_claims())
        claims.extend(self._deliveries.values())
        return {name_of(claim) for claim in claims} | self._settler.held()

    def busy_shards(self) -> set[ShardNumber]:
        """The shards of all claims that are here, settled ones aside."""
        shards = {claim.shard for _, _, claim in self._upcoming}
        shards.update(claim.shard for claim in self._lanes.waiting_claims())
        return shards | {claim.shard for claim in self._deliveries.values()}

    def give_back(self, shards: Collection[ShardNumber]) -> None:
        """Hand back the claims of these shards that were not sent."""
        unsent = [claim for _, _, claim in self._upcoming if claim.shard in shards]
        if unsent:
            self._upcoming = [entry for entry in self._upcoming if entry[2].shard not in shards]
            heapify(self._upcoming)
            self._upcoming_bytes -= sum(map(size_of, unsent))
        unsent.extend(self._lanes.take_waiting(shards))
        self._hand_back_unsent(unsent, self._clock.now())

    def call_when_room(self, wanted: int, on_room: Callable[[], None]) -> None:
        """Call back, once, when there is room for so many claims."""
        self._room_wanted, self._on_room = wanted, on_room
        self._tell_of_room()

    def accept(self, claims: Sequence[Claim]) -> None:
        now = self._clock.now()
        due = []
        for claim in claims:
            if claim.due_at <= now:
                due.append(claim)
            else:
                self._sequence += 1
                heappush(self._upcoming, (claim.due_at, self._sequence, claim))
                self._upcoming_bytes += size_of(claim)
        self._send(due, now)
        self._set_timer(now)

    async def stop(self, grace_seconds: float) -> None:
        """Hand back what was not sent; let what was sent finish within the grace.

        What is still unanswered then stays executing in the store, and the next owner of its
        shard recovers it: whether it arrived is unknown, and so it is tried again.
        """
        self._stopping = True
        for handle in (self._timer, self._caretaker):
            if handle is not None:
                handle.cancel()
        unsent = [claim for _, _, claim in self._upcoming]
        self._upcoming.clear()
        unsent.extend(self._lanes.take_waiting())
        self._hand_back_unsent(unsent, self._clock.now())
        if self._deliveries:
            _, abandoned = await asyncio.wait(set(self._deliveries), timeout=grace_seconds)
            for task in abandoned:
                task.cancel()
            if abandoned:
                _log.warning("engine.deliveries_abandoned", count=len(abandoned))
                await asyncio.wait(abandoned)

    def _send(self, claims: Sequence[Claim], now: Instant) -> None:
        now_seconds = self._clock.monotonic()
        for claim in claims:
            lane = self._lanes.of(self._endpoint_of(claim), now_seconds)
            if not lane.accept(claim, now_seconds):
                self._defer(lane, claim, now, now_seconds)
            if self._caretaker is None and lane.needs_care:
                self._set_caretaker()

    def _endpoint_of(self, claim: Claim) -> str:
        try:
            return self._destination.endpoint_of(claim)
        except Exception:
            # The attempt will fail as well and say why; the claims beside it must not suffer.
            return "unknown"

    def _start(self, lane: Lane, claim: Claim) -> None:
        task = asyncio.get_running_loop().create_task(self._occupy_slot(lane, claim))
        self._deliveries[task] = claim
        task.add_done_callback(lambda done: self._deliveries.pop(done, None))

    async def _occupy_slot(self, lane: Lane, claim: Claim) -> None:
        outcome = None
        try:
            outcome = await self._deliver(lane, claim)
        except asyncio.CancelledError:
            # It was given up because everything ends: nobody takes its place.
            lane.abandoned(claim)
            raise
        except Exception:
            self._drop_current()
            _log.exception("attempt.broken", namespace=claim.namespace, id=claim.id)
        now_seconds = self._clock.monotonic()
        lane.answered(claim, outcome, now_seconds)
        if lane.is_idle and not self._lanes.forget(lane, now_seconds):
            self._set_caretaker()
        self._tell_of_room()

    async def _deliver(self, lane: Lane, claim: Claim) -> Outcome | None:
        """None when it tells nothing about the endpoint."""
        if not self._leases.holds(claim):
            self._drop_current()
            return None
        now = self._clock.now()
        not_before = max(claim.due_at, claim.execute_at)
        if now < not_before:
            # The wall clock was set back while the claim waited for its turn, or since the
            # retry was planned.
            self._settler.add(claim.shard, hand_back(claim, due_at=not_before, now=now))
            return None
        self.lateness.record(claim, now, self._clock.monotonic())
        outcome, is_of_endpoint = await self._outcome_of(claim)
        settlement = settlement_of(
            claim, outcome, chance=random.random(), new_delivery_id=_new_delivery_id
        )
        if isinstance(outcome, Failed):
            self._log_failure(lane, claim, outcome, settlement)
        self._settler.add(claim.shard, settlement)
        return outcome if is_of_endpoint else None

    def _drop_current(self) -> None:
        """This attempt's claim is held no more. It may be executing in the store, and then nobody
        else will look for it there."""
        task = asyncio.current_task()
        assert task is not None
        self._deliveries.pop(task, None)
        self.has_dropped = True

    async def _outcome_of(self, claim: Claim) -> tuple[Outcome, bool]:
        """And whether it is the endpoint's doing."""
        try:
            return await self._destination.deliver(claim), True
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            problem = "the attempt was cancelled"
            _log.exception("destination.broken", namespace=claim.namespace, id=claim.id)
        except Exception as error:
            problem = str(error)
            _log.exception("destination.broken", namespace=claim.namespace, id=claim.id)
        # A destination that breaks its contract must not leave the timer executing forever.
        now = self._clock.now()
        reason = f"internal error: {problem}"
        return Failed(sent_at=now, answered_at=now, error=reason, blames_endpoint=False), False

    def _log_failure(
        self, lane: Lane, claim: Claim, outcome: Failed, settlement: Settlement
    ) -> None:
        fields: dict[str, object] = {
            "namespace": claim.namespace,
            "id": claim.id,
            "endpoint": lane.breaker.endpoint,
            "attempt": claim.attempt,
            "error": outcome.error,
        }
        if settlement.status is TimerStatus.FAILED:
            _log.warning("timer.failed", **fields)
        else:
            # Not for everybody: while an endpoint is away there are thousands a second.
            _log.debug("timer.retry_planned", due_at=format_instant(settlement.due_at), **fields)

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
        self._hand_back_what_is_far(now)
        self._timer = None
        self._set_timer(now)
        self._tell_of_room()

    def _hand_back_what_is_far(self, now: Instant) -> None:
        """Claims are held for their last milliseconds only. When the wall clock was set back
        they would be held for long, and leave no room for timers that are due before them."""
        if self._upcoming and self._upcoming[0][0] > plus_ms(now, self._farthest_ms):
            self._hand_back_unsent([claim for _, _, claim in self._upcoming], now)
            self._upcoming.clear()
            self._upcoming_bytes = 0

    def _tell_of_room(self) -> None:
        if self._on_room is not None and self.room() >= self._room_wanted:
            on_room, self._on_room = self._on_room, None
            on_room()

    def _set_caretaker(self) -> None:
        if self._caretaker is None and not self._stopping:
            self._caretaker = asyncio.get_running_loop().call_later(
                GROW_AFTER_SECONDS, self._look_after_lanes
            )

    def _look_after_lanes(self) -> None:
        self._caretaker = None
        now_seconds, now = self._clock.monotonic(), self._clock.now()
        for lane, claims in self._lanes.look_after(now_seconds):
            for claim in claims:
                self._defer(lane, claim, now, now_seconds)
        if self._lanes.need_care:
            self._set_caretaker()
        self._tell_of_room()

    def _hand_back_unsent(self, claims: Sequence[Claim], now: Instant) -> None:
        for claim in claims:
            self._settler.add(claim.shard, hand_back(claim, due_at=claim.due_at, now=now))

    def _defer(self, lane: Lane, claim: Claim, now: Instant, now_seconds: float) -> None:
        deferral_ms = lane.next_deferral_ms(claim.namespace, now_seconds)
        deferred_to = returning_at(plus_ms(now, deferral_ms))
        # Never sooner than it was due, even if the wall clock was set back since.
        due_at = max(deferred_to, claim.due_at)
        self._settler.add(claim.shard, hand_back(claim, due_at=due_at, now=now))


def _new_delivery_id() -> str:
    return str(uuid_utils.uuid7())
