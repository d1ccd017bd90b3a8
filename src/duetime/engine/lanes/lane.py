"""Fairness between endpoints, and between the namespaces that call one: a lane per endpoint."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator

from duetime.domain.keys import ShardNumber
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.outcome import Failed, Interrupted, Outcome
from duetime.domain.timer import Claim
from duetime.engine.lanes.breaker import PROBES, TROUBLE_SECONDS, Breaker
from duetime.engine.lanes.deferrals import RETURNS_PER_SECOND
from duetime.engine.lanes.quota import Quota, Quotas
from duetime.engine.lanes.slots import Slots, WaitingRoom, size_of
from duetime.engine.lanes.standing import HELD_UP_SECONDS, Standing
from duetime.engine.lanes.waiting_claims import GIVE_UP_AFTER_SECONDS, WaitingClaims
from duetime.engine.wait_log import Waited
from duetime.pauses import SHORTEST_PAUSE_SECONDS, Pauses

FIRST_WINDOW = 64
"""Attempts at once in a new lane. A quick endpoint needs no more; a slow one soon gets more."""

GROW_AFTER_SECONDS = 0.025
"""Time without an answer after which a full lane gets twice the window."""

MOST_MORE_AT_ONCE = 256
"""Attempts by which a window grows at most: each additional attempt opens a connection, and until
all of them are under way nothing is sent in other lanes."""


class Lane:
    """The attempts under way to one endpoint and the claims that wait for their turn.

    The waiting namespaces take turns; those that wait for their quota stand aside. When no answers
    come at all the lane grows, and at last hands its waiting claims back to the store, to be
    claimed again a little later: meanwhile they can be canceled, and they hold up nothing. While
    the breaker is open, only a few attempts are under way.

    `start` begins an attempt. `on_idle` is called when an answer leaves the lane without any
    claim, `on_free` when a slot is free and other lanes may wait for one.
    """

    def __init__(
        self,
        slots: Slots,
        quotas: Quotas,
        breaker: Breaker,
        pauses: Pauses,
        start: Callable[["Lane", Claim, Waited | None], None],
        on_idle: Callable[["Lane", float], None],
        on_free: Callable[[float], None],
        now_seconds: float,
    ) -> None:
        self._slots = slots
        self._quotas = quotas
        self._pauses = pauses
        self._start = start
        self._on_idle = on_idle
        self._on_free = on_free
        self._window = FIRST_WINDOW
        self._progress_seconds = now_seconds
        self._silent_since_seconds = math.inf
        self._gave_up = False
        self._bytes_in_flight = 0
        self._room = WaitingRoom()
        self._by_namespace: dict[str, WaitingClaims] = {}
        self._turns: deque[WaitingClaims] = deque()
        self.breaker = breaker
        self.standing = breaker.standing(now_seconds)
        self.in_flight = 0
        self.is_in_care = False
        """The caretaker looks after this lane."""

    @property
    def waiting(self) -> int:
        return self._room.claims

    @property
    def is_idle(self) -> bool:
        return self.in_flight == 0 and not self._room.claims

    @property
    def is_crowded_out(self) -> bool:
        """The lane has no attempt under way, and no slot is free for one."""
        return self.in_flight == 0 and self._slots.limit(self.standing) <= 0

    @property
    def needs_care(self) -> bool:
        """Claims wait or were handed back lately, or the lane can be forgotten soon."""
        return bool(self._by_namespace) or self.in_flight == 0

    def is_over(self, now_seconds: float) -> bool:
        """The lane is idle, and no claim that it handed back is still away."""
        return self.in_flight == 0 and not any(
            waiting or waiting.expect_more(now_seconds) for waiting in self._by_namespace.values()
        )

    def waiting_claims(self) -> Iterator[Claim]:
        for waiting in self._by_namespace.values():
            yield from waiting

    def held(self, now_seconds: float) -> Iterator[tuple[str, int]]:
        """The namespaces whose claims wait here or were deferred, each with their number."""
        for namespace, waiting in self._by_namespace.items():
            yield namespace, waiting.held(now_seconds)

    def accept(self, claim: Claim, now_seconds: float, waited: Waited | None = None) -> bool:
        """Start the claim, which may have waited elsewhere, or let it wait; False when it must be
        handed back."""
        if now_seconds - self._silent_since_seconds >= TROUBLE_SECONDS:
            self._notice_silence(now_seconds)
        quota = self._quotas.of(claim.namespace)
        if not self._turns and self._may_start() and quota.may_start():
            quota.in_flight += 1
            self._begin(claim, now_seconds, waited)
            return True
        if self.is_crowded_out:
            return False
        waiting = self._waiting_of(claim.namespace, quota)
        if self._gave_up:
            return False
        if not waiting.add(claim, now_seconds, self._hindrance(quota)):
            return False
        if not waiting.is_in_line:
            self._line_up(waiting, now_seconds)
        return True

    def answered(
        self, claim: Claim, outcome: Outcome | None, began_seconds: float, now_seconds: float
    ) -> None:
        """An attempt is over: its slot is free for the next. Without an outcome it was not made."""
        quota = self.abandoned(claim)
        if outcome is not None:
            if self.breaker.is_troubled or isinstance(outcome, Failed):
                self._judge(outcome, now_seconds)
            self._note_standing(outcome, began_seconds, now_seconds)
        self._progress_seconds = now_seconds
        if outcome is not None or self.in_flight == 0:
            # An attempt that was not made says nothing about the others under way.
            self._silent_since_seconds = math.inf
            self._gave_up = False
        if self._by_namespace:
            self._start_waiting(now_seconds)
            waiting = self._by_namespace.get(claim.namespace)
            if waiting is not None and not (waiting and waiting.flow):
                self._look_at(claim.namespace, waiting, now_seconds)
        if quota.is_waited_for:
            quota.resume(now_seconds)
        if self._slots.is_crowded:
            self._on_free(now_seconds)
        if self.is_idle:
            self._on_idle(self, now_seconds)

    def abandoned(self, claim: Claim) -> Quota:
        """An attempt was abandoned; its slot is free, but nothing starts in it."""
        size = size_of(claim)
        self.in_flight -= 1
        self._slots.used -= 1
        self._slots.used_by[self.standing] -= 1
        self._bytes_in_flight -= size
        self._slots.used_bytes -= size
        quota = self._quotas.of(claim.namespace)
        quota.in_flight -= 1
        return quota

    def look_after(self, now_seconds: float) -> list[Claim]:
        """Use slots that other lanes freed; grow or give up when no answer came for a while.
        Returns the claims to hand back."""
        self._notice_silence(now_seconds)
        self._start_waiting(now_seconds)
        quiet_seconds = now_seconds - self._progress_seconds
        if quiet_seconds >= SHORTEST_PAUSE_SECONDS:
            quiet_seconds = self._pauses.awake_seconds(self._progress_seconds, now_seconds)
        is_quiet = bool(self._turns) and quiet_seconds >= GROW_AFTER_SECONDS
        for waiting in self._by_namespace.values():
            waiting.set_flow(not is_quiet and self._gets_its_turn_soon(waiting, now_seconds))
        if is_quiet:
            if not self.breaker.is_open and self._window < self._slots.limit(self.standing):
                self._window += min(self._window, MOST_MORE_AT_ONCE)
                self._start_waiting(now_seconds)
            elif quiet_seconds >= self._patience_seconds:
                self._gave_up = True
                return self.take_waiting()
        return self._take_beyond_reach(now_seconds)

    def notice_hanging(self, now_seconds: float) -> None:
        """Take the worst standing if no attempt under way got an answer for a while."""
        if (
            self.in_flight
            and self.standing is not Standing.HANGS
            and now_seconds - self._silent_since_seconds >= TROUBLE_SECONDS
            and self._pauses.awake_seconds(self._silent_since_seconds, now_seconds)
            >= TROUBLE_SECONDS
        ):
            self._take_standing(Standing.HANGS)

    def take_waiting(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take out the waiting claims: all of them, or those of some shards."""
        taken = []
        for waiting in self._by_namespace.values():
            taken += waiting.take(shards)
        self._leave_line()
        return taken

    def next_deferral_ms(self, namespace: str, now_seconds: float) -> float:
        """The deferral of a claim of the namespace that is handed back now."""
        waiting = self._waiting_of(namespace, self._quotas.of(namespace))
        returns_per_second = RETURNS_PER_SECOND / len(self._by_namespace)
        return waiting.next_deferral_ms(
            self._under_way(waiting),
            returns_per_second,
            now_seconds,
            may_grow=not self._is_held_back(waiting),
        )

    def _resume(self, waiting: WaitingClaims, now_seconds: float) -> None:
        """The namespace has room for one more attempt."""
        if self._may_start():
            self._begin_first(waiting, now_seconds)
            if waiting:
                self._line_up(waiting, now_seconds)
            return
        if not (self.breaker.is_open or self._gave_up):
            waiting.reserve()
        waiting.is_in_line = True
        self._take_turns(waiting, now_seconds)

    def _line_up(self, waiting: WaitingClaims, now_seconds: float) -> None:
        waiting.is_in_line = True
        if waiting.quota.may_start():
            self._take_turns(waiting, now_seconds)
        else:
            waiting.quota.block(waiting)

    def _take_turns(self, waiting: WaitingClaims, now_seconds: float) -> None:
        if self.in_flight == 0 and not self._turns:
            self._progress_seconds = now_seconds
        self._turns.append(waiting)

    def _leave_line(self) -> None:
        """Remove namespaces without waiting claims from the line."""
        for waiting in self._turns:
            waiting.is_in_line = bool(waiting)
        self._turns = deque(waiting for waiting in self._turns if waiting)

    def _start_waiting(self, now_seconds: float) -> None:
        turns = self._turns
        while turns and self._may_start():
            waiting = turns[0]
            if not (waiting.has_reservation or waiting.quota.may_start()):
                turns.popleft()
                waiting.quota.block(waiting)
                continue
            self._begin_first(waiting, now_seconds)
            if waiting:
                turns.rotate(-1)
            else:
                turns.popleft().is_in_line = False

    def _judge(self, outcome: Outcome, now_seconds: float) -> None:
        was_open = self.breaker.is_open
        if isinstance(outcome, Failed):
            self._notice_silence(now_seconds)
        self.breaker.heard(outcome, now_seconds)
        if was_open and not self.breaker.is_open:
            self._window = FIRST_WINDOW

    def _note_standing(self, outcome: Outcome, began_seconds: float, now_seconds: float) -> None:
        breaker = self.breaker
        if isinstance(outcome, Failed) and outcome.blames_endpoint:
            lasted_seconds = now_seconds - began_seconds
            if (
                lasted_seconds < HELD_UP_SECONDS
                or self._pauses.awake_seconds(began_seconds, now_seconds) < HELD_UP_SECONDS
            ):
                # A failure, but not one that keeps slots from others.
                if breaker.hung or self.standing is Standing.HANGS:
                    breaker.hung = False
                    self._take_standing(breaker.standing(now_seconds))
            elif not breaker.answered_within(lasted_seconds, now_seconds):
                breaker.answered_seconds, breaker.hung = None, True
                self._take_standing(Standing.HANGS)
        elif not isinstance(outcome, Interrupted):
            breaker.answered_seconds, breaker.hung = now_seconds, False
            if self.standing is not Standing.ANSWERS:
                self._take_standing(Standing.ANSWERS)

    def _take_standing(self, standing: Standing) -> None:
        """All attempts under way count with the slots of the endpoint's standing."""
        self._slots.used_by[self.standing] -= self.in_flight
        self._slots.used_by[standing] += self.in_flight
        self.standing = standing

    def _notice_silence(self, now_seconds: float) -> None:
        if now_seconds - self._silent_since_seconds < TROUBLE_SECONDS:
            return
        silent_seconds = self._pauses.awake_seconds(self._silent_since_seconds, now_seconds)
        if silent_seconds >= TROUBLE_SECONDS:
            self.breaker.hangs(self.in_flight, silent_seconds)

    def _waiting_of(self, namespace: str, quota: Quota) -> WaitingClaims:
        waiting = self._by_namespace.get(namespace)
        if waiting is None:
            waiting = WaitingClaims(self._slots, self._room, quota, self._resume)
            self._by_namespace[namespace] = waiting
        elif waiting.quota is not quota:
            # The old quota was forgotten while the namespace had no claims here.
            waiting.quota, waiting.is_in_line = quota, False
        return waiting

    def _look_at(self, namespace: str, waiting: WaitingClaims, now_seconds: float) -> None:
        """After an answer: forget a namespace that has caught up, and let the others flow again."""
        flow = self._gets_its_turn_soon(waiting, now_seconds)
        waiting.set_flow(flow)
        if flow and not waiting:
            del self._by_namespace[namespace]

    def _gets_its_turn_soon(self, waiting: WaitingClaims, now_seconds: float) -> bool:
        if waiting.first_waits_too_long(now_seconds):
            return False
        return not (waiting.expect_more(now_seconds) and self._is_held_back(waiting))

    def _is_held_back(self, waiting: WaitingClaims) -> bool:
        """The endpoint's breaker or the namespace's quota limits the attempts under way, so waiting
        may take long."""
        return self.breaker.is_open or waiting.quota.is_limited

    def _under_way(self, waiting: WaitingClaims) -> float:
        """Number of attempts of which one has to end before a waiting claim can start: the probes,
        the attempts of a namespace with a limit, or else an equal share of the lane's attempts."""
        if self.breaker.is_open:
            return min(self.in_flight, PROBES)
        if waiting.quota.is_limited:
            return waiting.quota.in_flight
        return self.in_flight / len(self._by_namespace)

    @property
    def _patience_seconds(self) -> float:
        """Time without an answer after which waiting claims are handed back. Longer for probes,
        which are few and may be slow."""
        return TROUBLE_SECONDS if self.breaker.is_open else GIVE_UP_AFTER_SECONDS

    def _take_beyond_reach(self, now_seconds: float) -> list[Claim]:
        taken = []
        for namespace, waiting in list(self._by_namespace.items()):
            if not (waiting or waiting.expect_more(now_seconds)):
                del self._by_namespace[namespace]
            elif waiting.first_waits_too_long(now_seconds) and self._is_held_back(waiting):
                taken += waiting.take_beyond_reach(self._under_way(waiting), now_seconds)
        if taken:
            self._leave_line()
        return taken

    def _may_start(self) -> bool:
        in_flight = self.in_flight
        if in_flight >= (PROBES if self.breaker.is_open else self._window):
            return False
        return in_flight < self._slots.limit(self.standing) and (
            self._bytes_in_flight == 0 or self._bytes_in_flight < self._slots.byte_limit()
        )

    def hindrance(self, namespace: str) -> WaitCause:
        """Why a claim of the namespace that cannot start has to wait now."""
        return self._hindrance(self._quotas.of(namespace))

    def _hindrance(self, quota: Quota) -> WaitCause:
        if self.breaker.is_open and self.in_flight >= PROBES:
            return WaitCause.BREAKER
        if quota.is_full:
            return WaitCause.QUOTA
        if self.in_flight < self._window and self.in_flight >= self._slots.limit(self.standing):
            return WaitCause.SLOTS
        return WaitCause.BREAKER if self.breaker.is_open else WaitCause.LANE

    def _begin_first(self, waiting: WaitingClaims, now_seconds: float) -> None:
        claim, waited = waiting.start_first(now_seconds)
        self._begin(claim, now_seconds, waited)

    def _begin(self, claim: Claim, now_seconds: float, waited: Waited | None) -> None:
        size = size_of(claim)
        if self.in_flight == 0:
            # Nothing was under way, so the absence of answers means nothing.
            self._progress_seconds, self._gave_up = now_seconds, False
        self.in_flight += 1
        self._slots.used += 1
        self._slots.used_by[self.standing] += 1
        self._bytes_in_flight += size
        self._slots.used_bytes += size
        if self._silent_since_seconds == math.inf:
            self._silent_since_seconds = now_seconds
        self._start(self, claim, waited)
