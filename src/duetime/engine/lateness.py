"""How late attempts were sent, lately."""

from collections import deque

from duetime.domain.instants import MICROSECONDS_PER_MS


class Lateness:
    """The lateness of the last thousand attempts. Recording is cheap; reading sorts."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=1_000)

    def record(self, microseconds: int) -> None:
        self._recent.append(microseconds)

    def percentile_ms(self, percent: float) -> float | None:
        """None when nothing was sent yet."""
        if not self._recent:
            return None
        ordered = sorted(self._recent)
        return ordered[int((len(ordered) - 1) * percent / 100)] / MICROSECONDS_PER_MS
