"""Cancellations that find no timer, because it may still be created."""

from collections import deque
from enum import Enum

from duetime.ports.bus import REDELIVER_AFTER_SECONDS, ReceivedCommand
from duetime.ports.clock import Clock

SETTLING_SECONDS = 5.0
"""Time after the redelivery of a dead node's commands in which their timers are created."""

MAX_PATIENT = 500
"""Cancellations that may wait for a redelivery. More of them could use up the in-flight limit, and
commands of other calls would wait, too."""

MAX_KNOWN = 10_000
"""Cancellations that are remembered."""

FORGET_SECONDS = 20 * (REDELIVER_AFTER_SECONDS + SETTLING_SECONDS)
"""Time for which a cancellation that another node has acknowledged is remembered. A redelivery may
go to a node that does not know the cancellation yet, so many nodes need many redeliveries."""


class NextStep(Enum):
    GIVE_BACK = "give back"
    """Another node may be about to create the timer."""

    HOLD = "hold"
    """A node may have died with the command that creates the timer. Without an acknowledgement,
    the cancellation comes again after that command does."""

    ACKNOWLEDGE = "acknowledge"
    """There is no such timer."""


class UnknownCancels:
    """Decides what to do with cancellations by the time for which this node has known them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[int, float] = {}
        self._learnt: deque[float] = deque()
        """When cancellations became known that may still be waiting."""

    def next_step(self, command: ReceivedCommand) -> NextStep:
        """The step for a cancellation that found no timer now."""
        now_seconds = self._clock.monotonic()
        self._forget_old_ones(now_seconds)
        since_seconds = self._known.get(command.order)
        if since_seconds is None:
            self._known[command.order] = now_seconds
            self._learnt.append(now_seconds)
            return NextStep.GIVE_BACK
        known_seconds = now_seconds - since_seconds
        if known_seconds < REDELIVER_AFTER_SECONDS and len(self._learnt) <= MAX_PATIENT:
            return NextStep.HOLD
        if REDELIVER_AFTER_SECONDS <= known_seconds < REDELIVER_AFTER_SECONDS + SETTLING_SECONDS:
            return NextStep.GIVE_BACK
        del self._known[command.order]
        return NextStep.ACKNOWLEDGE

    def start_over(self) -> None:
        """The broker or the store was away, and commands of other nodes had to wait for it."""
        self._known.clear()
        self._learnt.clear()

    def _forget_old_ones(self, now_seconds: float) -> None:
        while self._learnt and now_seconds - self._learnt[0] >= REDELIVER_AFTER_SECONDS:
            self._learnt.popleft()
        while self._known:
            order, since_seconds = next(iter(self._known.items()))
            if len(self._known) < MAX_KNOWN and now_seconds - since_seconds < FORGET_SECONDS:
                return
            del self._known[order]
