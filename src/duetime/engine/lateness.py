"""Measures how late recent attempts were sent."""

from collections import deque

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.timer import Claim
from duetime.domain.transitions import was_due_at

LATELY_SECONDS = 60.0


class Lateness:
    """The lateness of the last thousand attempts within the last minute.

    The lateness of a timer counts from the instant its client asked for, or from its creation if
    that was later; of a retry from the instant it was planned for; of a redriven timer from the
    instant it was redriven. So waiting for a busy endpoint counts. Recording is cheap; reading
    sorts.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque(maxlen=1_000)

    def record(self, claim: Claim, now: Instant, now_seconds: float) -> None:
        self._recent.append((now_seconds, now - max(was_due_at(claim), claim.created_at)))

    def percentile_ms(self, percent: float, now_seconds: float) -> float | None:
        """None when nothing was sent within the last minute."""
        since = now_seconds - LATELY_SECONDS
        ordered = sorted(late for sent_seconds, late in self._recent if sent_seconds >= since)
        if not ordered:
            return None
        return ordered[int((len(ordered) - 1) * percent / 100)] / MICROSECONDS_PER_MS
