"""The lanes of all endpoints with claims under way or waiting, and the care they need."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain, islice

from msgspec.structs import replace

from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import ShardNumber
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Claim
from duetime.domain.transitions import holds, not_before
from duetime.engine.lanes.breaker import PROBES, Breaker, IdleBreakers
from duetime.engine.lanes.crowd import Crowd
from duetime.engine.lanes.deferrals import returning_at
from duetime.engine.lanes.lane import GROW_AFTER_SECONDS, Lane
from duetime.engine.lanes.paused_endpoints import PausedEndpoints
from duetime.engine.lanes.quota import Quotas
from duetime.engine.lanes.slots import Slots
from duetime.engine.lanes.standing import Standing
from duetime.engine.settler import Settler
from duetime.engine.wait_log import Waited, WaitLog
from duetime.engine.wakeups import LocalWakeUps
from duetime.pauses import PULSE_SECONDS, Pauses
from duetime.ports.clock import Clock
from duetime.ports.endpoints import EndpointPause, EndpointState, EndpointStatus, HeldTimers

MOST_LANES_AT_ONCE = 512
"""Lanes that are looked after in one turn of the event loop. If more need care, they take turns:
thousands of endpoints that hang must not delay others by the care they need."""


class Lanes:
    """Idle lanes are forgotten; the breaker of a failing endpoint is kept longer.

    A claim that its lane does not accept is deferred: handed back to the store, to be claimed
    again a little later. `start` begins an attempt.
    """

    def __init__(
        self,
        slots: Slots,
        quotas: Quotas,
        settler: Settler,
        clock: Clock,
        wakeups: LocalWakeUps,
        start: Callable[[Lane, Claim, Waited | None], None],
        wait_log: WaitLog,
    ) -> None:
        self._wait_log = wait_log
        self._slots = slots
        self._quotas = quotas
        self._settler = settler
        self._clock = clock
        self._wakeups = wakeups
        self._start = start
        self._lanes: dict[str, Lane] = {}
        self._pauses = Pauses()
        self._idle = IdleBreakers(clock, self._pauses)
        self._crowd = Crowd(slots)
        self._in_care: dict[Lane, None] = {}
        self._caretaker: asyncio.TimerHandle | None = None
        self._pulse: asyncio.TimerHandle | None = None
        self._stopping = False
        self.paused = PausedEndpoints()

    def accept(
        self,
        endpoint: str,
        claim: Claim,
        now: Instant,
        now_seconds: float,
        waited: Waited | None = None,
    ) -> None:
        """Start the claim, which may have waited in the crowd, let it wait for its turn, or defer
        it."""
        if endpoint in self.paused:
            self._put_off(endpoint, claim, now, now_seconds)
            return
        lane = self._lanes.get(endpoint)
        if lane is None:
            breaker = self._idle.take(endpoint)
            lane = Lane(
                self._slots,
                self._quotas,
                breaker,
                self._pauses,
                self._start,
                self._lane_is_idle,
                self._slot_is_free,
                now_seconds,
            )
            self._lanes[endpoint] = lane
            if self._pulse is None:
                self._pauses.begin(now_seconds)
                self._set_pulse()
        if not lane.accept(claim, now_seconds, waited):
            if lane.is_crowded_out:
                self._wait_in_crowd(lane, claim, now, now_seconds)
            else:
                self._defer(lane, claim, now, now_seconds)
            if lane.breaker.endpoint not in self._lanes:
                return
        if not lane.is_in_care and lane.needs_care:
            self._care_for(lane)

    def set_pauses(self, pauses: Mapping[str, EndpointPause]) -> None:
        """Begin no attempt at these endpoints. Attempts under way finish; claims that wait in a
        lane are handed back now, and those of the crowd when they get a slot or lose patience."""
        now_seconds, now = self._clock.monotonic(), self._clock.now()
        for endpoint in self.paused.replace_all(pauses):
            lane = self._lanes.get(endpoint)
            for claim in () if lane is None else lane.take_waiting():
                self._put_off(endpoint, claim, now, now_seconds)

    def stop(self) -> None:
        """Look after the lanes no more."""
        self._stopping = True
        for timer in (self._caretaker, self._pulse):
            if timer is not None:
                timer.cancel()

    def _set_pulse(self) -> None:
        if not self._stopping:
            self._pulse = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._show_pulse)

    def _show_pulse(self) -> None:
        self._pulse = None
        now_seconds = self._clock.monotonic()
        self._pauses.pulse(now_seconds)
        for lane in self._lanes.values():
            lane.notice_hanging(now_seconds)
        if self._lanes:
            self._set_pulse()

    def _lane_is_idle(self, lane: Lane, now_seconds: float) -> None:
        if not self._forget(lane, now_seconds) and not lane.is_in_care:
            self._care_for(lane)

    def _care_for(self, lane: Lane) -> None:
        lane.is_in_care = True
        self._in_care[lane] = None
        self._set_caretaker()

    def _slot_is_free(self, now_seconds: float) -> None:
        """Give free slots to the endpoints that wait for one."""
        self._crowd.slot_freed(now_seconds)
        if self._stopping:
            return
        now = self._clock.now()
        while (waiting := self._crowd.take_next()) is not None:
            endpoint, claim, since_seconds = waiting
            waited = WaitCause.SLOTS, now_seconds - since_seconds
            self.accept(endpoint, claim, now, now_seconds, waited)

    def _wait_in_crowd(self, lane: Lane, claim: Claim, now: Instant, now_seconds: float) -> None:
        """Let the claim wait for a slot outside its lane, which may be forgotten meanwhile: there
        may be many such endpoints."""
        standing, endpoint = lane.standing, lane.breaker.endpoint
        if self._crowd.add(standing, endpoint, claim, now_seconds):
            self._set_caretaker()
        else:
            deferral_ms = self._crowd.next_deferral_ms(standing, now_seconds)
            self._hand_back(claim, deferral_ms, now, WaitCause.SLOTS)
        self._forget(lane, now_seconds)

    def _forget(self, lane: Lane, now_seconds: float) -> bool:
        """False when there is a reason to keep the lane for a while."""
        if not lane.is_over(now_seconds):
            return False
        if self._lanes.get(lane.breaker.endpoint) is lane:
            del self._lanes[lane.breaker.endpoint]
            self._idle.put(lane.breaker, now_seconds)
        self._in_care.pop(lane, None)
        return True

    def _set_caretaker(self) -> None:
        if self._caretaker is None and not self._stopping:
            self._caretaker = asyncio.get_running_loop().call_later(
                GROW_AFTER_SECONDS, self._look_after
            )

    def _look_after(self) -> None:
        self._caretaker = None
        now_seconds, now = self._clock.monotonic(), self._clock.now()
        self._quotas.resume(now_seconds)
        lanes = list(islice(self._in_care, MOST_LANES_AT_ONCE))
        handed_back = [(lane, lane.look_after(now_seconds)) for lane in lanes]
        for lane, claims in handed_back:
            for claim in claims:
                self._defer(lane, claim, now, now_seconds)
            if lane.is_idle and self._forget(lane, now_seconds):
                continue
            del self._in_care[lane]
            if lane.needs_care:
                self._in_care[lane] = None
            else:
                lane.is_in_care = False
        for standing, claim in self._crowd.take_beyond_reach(now_seconds):
            deferral_ms = self._crowd.next_deferral_ms(standing, now_seconds)
            self._hand_back(claim, deferral_ms, now, WaitCause.SLOTS)
        if self._in_care or self._crowd:
            self._set_caretaker()
        self._wakeups.check_room()

    def _defer(self, lane: Lane, claim: Claim, now: Instant, now_seconds: float) -> None:
        deferral_ms = lane.next_deferral_ms(claim.namespace, now_seconds)
        if lane.standing is not Standing.ANSWERS and self._slots.limit(lane.standing) <= 0:
            # A bound for all that wait for the same slots, beside the one for each endpoint.
            crowd_ms = self._crowd.next_deferral_ms(lane.standing, now_seconds)
            deferral_ms = max(deferral_ms, crowd_ms)
        self._hand_back(claim, deferral_ms, now, lane.hindrance(claim.namespace))

    def _put_off(self, endpoint: str, claim: Claim, now: Instant, now_seconds: float) -> None:
        deferral_ms = self.paused.put_off(endpoint, claim, now_seconds)
        self._hand_back(claim, deferral_ms, now, WaitCause.PAUSED)

    def _hand_back(self, claim: Claim, deferral_ms: float, now: Instant, cause: WaitCause) -> None:
        deferred_to = returning_at(plus_ms(now, deferral_ms))
        # Never sooner than it was due, even if the wall clock was set back since.
        due_at = max(deferred_to, not_before(claim))
        self._wait_log.handed_back(claim, cause, now=now, due_at=due_at)
        self._settler.hand_back(claim, cause, due_at=due_at, now=now)

    @property
    def waiting(self) -> int:
        return sum(lane.waiting for lane in self._lanes.values()) + len(self._crowd)

    def waiting_claims(self) -> Iterator[Claim]:
        for lane in self._lanes.values():
            yield from lane.waiting_claims()
        yield from self._crowd

    def take_waiting(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take out the waiting claims: all of them, or those of some shards."""
        taken = [claim for lane in self._lanes.values() for claim in lane.take_waiting(shards)]
        return taken + self._crowd.take(shards)

    def waits_for(self, endpoint: str, claim: Claim) -> WaitCause | None:
        """The cause for which the claim waits here; None if it does not."""
        lane = self._lanes.get(endpoint)
        if lane is not None and holds(lane.waiting_claims(), claim):
            return lane.hindrance(claim.namespace)
        return WaitCause.SLOTS if holds(self._crowd, claim) else None

    def status_of(self, endpoint: str) -> EndpointStatus | None:
        """The endpoint, if it is in use, paused or failed lately."""
        lane = self._lanes.get(endpoint)
        if lane is not None:
            status = _status(lane.breaker, lane.in_flight, lane.waiting)
        elif (breaker := self._idle.find(endpoint)) is not None:
            status = _status(breaker)
        elif endpoint in self.paused:
            status = _status(Breaker(endpoint, self._clock, self._pauses))
        else:
            return None
        return self._with_pause(status) if endpoint in self.paused else status

    def held(self) -> list[HeldTimers]:
        """The timers that wait behind open breakers, the largest groups first."""
        now_seconds = self._clock.monotonic()
        held = [
            HeldTimers(
                endpoint=lane.breaker.endpoint,
                namespace=namespace,
                timers=timers,
                since=lane.breaker.opened_at,
            )
            for lane in self._lanes.values()
            if lane.breaker.is_open
            for namespace, timers in lane.held(now_seconds)
            if timers
        ]
        held.sort(key=lambda group: -group.timers)
        return held

    def names(self) -> list[str]:
        """The endpoints in use, paused, open, or failing lately."""
        idle = self._idle.remembered(self._clock.monotonic())
        paused = (pause.endpoint for pause in self.paused.pauses())
        return list(dict.fromkeys([*self._lanes, *(each.endpoint for each in idle), *paused]))

    def troubled(self, most: int) -> list[EndpointStatus]:
        """Up to `most` endpoints that are paused, open or failing: in this order."""
        idle = self._idle.remembered(self._clock.monotonic())
        breakers = [*(lane.breaker for lane in self._lanes.values()), *idle]
        names = chain(
            (pause.endpoint for pause in self.paused.pauses()),
            (breaker.endpoint for breaker in breakers if breaker.is_open),
            (breaker.endpoint for breaker in breakers if breaker.failures),
        )
        first = islice(dict.fromkeys(names), most)
        return [status for name in first if (status := self.status_of(name)) is not None]

    def statuses(self) -> list[EndpointStatus]:
        """The endpoints in use, paused, open, or failing lately; the paused ones first, then the
        open ones, by name."""
        now_seconds = self._clock.monotonic()
        statuses = [
            _status(lane.breaker, lane.in_flight, lane.waiting)
            for endpoint, lane in self._lanes.items()
            if endpoint not in self.paused
        ]
        statuses += [
            _status(breaker)
            for breaker in self._idle.remembered(now_seconds)
            if breaker.endpoint not in self.paused
        ]
        paused = [self.status_of(pause.endpoint) for pause in self.paused.pauses()]
        statuses += [status for status in paused if status is not None]
        statuses.sort(
            key=lambda status: (
                status.pause is None,
                status.state is EndpointState.CLOSED,
                status.endpoint,
            )
        )
        return statuses

    def _with_pause(self, status: EndpointStatus) -> EndpointStatus:
        put_off = self.paused.waiting(status.endpoint, self._clock.monotonic())
        pause = self.paused.pause_of(status.endpoint)
        return replace(status, waiting=status.waiting + put_off, pause=pause)


def _status(breaker: Breaker, in_flight: int = 0, waiting: int = 0) -> EndpointStatus:
    if not breaker.is_open:
        state = EndpointState.CLOSED
    elif 0 < in_flight <= PROBES:
        state = EndpointState.HALF_OPEN
    else:
        state = EndpointState.OPEN
    return EndpointStatus(
        endpoint=breaker.endpoint,
        state=state,
        in_flight=in_flight,
        waiting=waiting,
        consecutive_failures=breaker.failures,
        last_error=breaker.last_error,
        opened_at=breaker.opened_at,
        failing_since=breaker.failing_since,
    )
