"""Pauses of this process, in which nobody's silence counts."""

from collections import deque

PULSE_SECONDS = 0.25
"""Interval at which a process that makes attempts shows that it runs."""

SHORTEST_PAUSE_SECONDS = 1.0
"""Time without a pulse from which the process counts as paused: it was stopped or suspended, or one
step of its event loop took that long."""

REMEMBERED_PAUSES = 32


class Pauses:
    """Remembers when this process did not run.

    Answers that arrived meanwhile wait in their sockets, and were read by nobody: an endpoint must
    not be judged by that time.
    """

    def __init__(self, shortest_seconds: float = SHORTEST_PAUSE_SECONDS) -> None:
        self._shortest_seconds = shortest_seconds
        self._pulse_seconds = 0.0
        self._recent: deque[tuple[float, float]] = deque(maxlen=REMEMBERED_PAUSES)
        """Beginning and end of each pause."""

    def begin(self, now_seconds: float) -> None:
        """Pulses come from now on."""
        self._pulse_seconds = now_seconds

    def pulse(self, now_seconds: float) -> None:
        if now_seconds - self._pulse_seconds >= self._shortest_seconds:
            self._recent.append((self._pulse_seconds, now_seconds))
        self._pulse_seconds = now_seconds

    def awake_seconds(self, since_seconds: float, now_seconds: float) -> float:
        """Time since then in which the process ran. May be asked before the first pulse after a
        pause."""
        self.pulse(now_seconds)
        paused_seconds = sum(
            max(0.0, end_seconds - max(begin_seconds, since_seconds))
            for begin_seconds, end_seconds in self._recent
        )
        return now_seconds - since_seconds - paused_seconds
