"""Fairness between endpoints: each has a lane of its own."""

from collections import deque
from collections.abc import Callable

from duetime.domain.timer import Claim

FIRST_WINDOW = 64
"""Attempts at once in a new lane. A quick endpoint needs no more; a slow one soon gets more."""

GROW_AFTER_SECONDS = 0.025
"""A full lane in which nothing was answered for so long is given twice the window."""

GIVE_UP_AFTER_SECONDS = 0.25
"""A lane that cannot grow and in which nothing was answered for so long hands back what waits."""

FIRST_DEFERRAL_MS = 250.0
LONGEST_DEFERRAL_MS = 5_000.0

MAX_WAITING = 1_024


class Slots:
    """The attempts that may run at the same time, shared by all lanes.

    A lane may have as many of them as are free. So one endpoint that hangs takes at most half,
    two take a third each, and some are always left for the others.
    """

    def __init__(self, total: int, per_endpoint: int) -> None:
        self.total = total
        self.per_endpoint = per_endpoint
        self.used = 0
        self.waiting = 0
        """Claims that wait in lanes that flow."""

    def limit(self) -> int:
        return min(self.per_endpoint, self.total - self.used)


class Lane:
    """The attempts under way to one endpoint and the claims that wait for their turn.

    A lane flows as long as answers come in. When none come it stops counting against what the
    engine may claim, grows, and at last hands its waiting claims back to the store, to be
    claimed again a little later: they are then free to be canceled, and nobody waits for them.
    """

    def __init__(
        self, slots: Slots, start: Callable[["Lane", Claim], None], now_seconds: float
    ) -> None:
        self._slots = slots
        self._start = start
        self._window = FIRST_WINDOW
        self._progress_seconds = now_seconds
        self._gave_up = False
        self._deferral_ms = FIRST_DEFERRAL_MS
        self.in_flight = 0
        self.waiting: deque[Claim] = deque()
        self._flows = True

    @property
    def is_idle(self) -> bool:
        return self.in_flight == 0 and not self.waiting

    def accept(self, claim: Claim) -> bool:
        """Start the claim or let it wait; False when it must be handed back."""
        if not self.waiting and self._may_start():
            self._begin(claim)
            return True
        if self._gave_up or len(self.waiting) >= MAX_WAITING:
            return False
        self.waiting.append(claim)
        self._slots.waiting += self._flows
        return True

    def answered(self, now_seconds: float) -> None:
        """One attempt is over: its slot is free for the next."""
        self.in_flight -= 1
        self._slots.used -= 1
        self._progress_seconds = now_seconds
        self._gave_up = False
        self._deferral_ms = FIRST_DEFERRAL_MS
        self._set_flows(True)
        self._start_waiting()

    def look_after(self, now_seconds: float) -> list[Claim]:
        """Grow or give up when nothing was answered for a while; the claims to hand back."""
        quiet_seconds = now_seconds - self._progress_seconds
        if not self.waiting or quiet_seconds < GROW_AFTER_SECONDS:
            return []
        self._set_flows(False)
        if self._window < self._slots.limit():
            self._window *= 2
            self._start_waiting()
        if quiet_seconds < GIVE_UP_AFTER_SECONDS:
            return []
        self._gave_up = True
        return self.take_waiting()

    def take_waiting(self) -> list[Claim]:
        """Take all that waits out of the lane."""
        taken = list(self.waiting)
        self.waiting.clear()
        self._slots.waiting -= len(taken) * self._flows
        return taken

    def next_deferral_ms(self) -> float:
        """How long the claims handed back now stay away; longer each time nothing moves."""
        deferral = self._deferral_ms
        self._deferral_ms = min(2 * deferral, LONGEST_DEFERRAL_MS)
        return deferral

    def _start_waiting(self) -> None:
        while self.waiting and self._may_start():
            self._slots.waiting -= self._flows
            self._begin(self.waiting.popleft())

    def _set_flows(self, flows: bool) -> None:
        self._slots.waiting += len(self.waiting) * (flows - self._flows)
        self._flows = flows

    def _may_start(self) -> bool:
        return self.in_flight < min(self._window, self._slots.limit())

    def _begin(self, claim: Claim) -> None:
        self.in_flight += 1
        self._slots.used += 1
        self._start(self, claim)
