"""Figures of the attempts to each endpoint in the last minutes."""

from collections import deque

from duetime.domain.instants import MICROSECONDS_PER_MS, MICROSECONDS_PER_SECOND, Instant
from duetime.domain.outcome import Failed, Outcome
from duetime.ports.endpoints import FIGURES_MINUTES, EndpointFigures

MAX_ENDPOINTS = 1_000
"""Endpoints whose attempts are counted in one minute. Attempts at others are not counted."""

_MINUTE = 60 * MICROSECONDS_PER_SECOND
_BUCKETS = 41
_SHIFT = 16
"""A bucket ends at the square root of a power of two: each is 1.41 times as long as the one before,
from a quarter of a millisecond to four minutes."""

_FAILURES = _BUCKETS
"""Place of the failures behind the buckets."""


class EndpointCounts:
    """Durations are kept as counts in buckets, so that memory does not grow with the attempts. A
    percentile may be off by a fifth.

    An attempt counts in the minute in which it was answered, by the wall clock.
    """

    def __init__(self) -> None:
        self._minutes: deque[tuple[int, dict[str, list[int]]]] = deque(maxlen=FIGURES_MINUTES)
        """For each minute the counts of each endpoint, the current minute last."""
        self._current: dict[str, list[int]] = {}
        self._begins_at = self._ends_at = 0

    def observe(self, endpoint: str, outcome: Outcome, took: int) -> None:
        """Count an attempt that took so many microseconds."""
        if not self._begins_at <= outcome.answered_at < self._ends_at:
            self._begin_minute(outcome.answered_at // _MINUTE)
        counts = self._current.get(endpoint)
        if counts is None:
            if len(self._current) >= MAX_ENDPOINTS:
                return
            counts = self._current[endpoint] = [0] * (_BUCKETS + 1)
        if type(outcome) is Failed and outcome.blames_endpoint:
            counts[_FAILURES] += 1
        bucket = (took * took >> _SHIFT).bit_length() if took > 0 else 0
        counts[bucket if bucket < _BUCKETS else _BUCKETS - 1] += 1

    def endpoints(self, now: Instant) -> list[str]:
        """The endpoints that have figures."""
        self._forget_old(now)
        return list({endpoint: None for _, minute in self._minutes for endpoint in minute})

    def figures_of(self, endpoint: str, now: Instant) -> EndpointFigures | None:
        """None if no attempt is known within the last minutes."""
        self._forget_old(now)
        counted = [minute[endpoint] for _, minute in self._minutes if endpoint in minute]
        if not counted:
            return None
        *counts, failures = map(sum, zip(*counted, strict=True))
        attempts = sum(counts)
        return EndpointFigures(
            attempts=attempts,
            failures=failures,
            p50_ms=_percentile_ms(counts, attempts * 0.50),
            p99_ms=_percentile_ms(counts, attempts * 0.99),
        )

    def _begin_minute(self, number: int) -> None:
        self._current = {}
        self._minutes.append((number, self._current))
        self._begins_at, self._ends_at = number * _MINUTE, (number + 1) * _MINUTE

    def _forget_old(self, now: Instant) -> None:
        """Forget the minutes that are over for long. After the wall clock was set back, those that
        seem to lie ahead are among the last ones."""
        while self._minutes and self._minutes[0][0] <= now // _MINUTE - FIGURES_MINUTES:
            self._minutes.popleft()
        if not self._minutes:
            self._ends_at = self._begins_at


def _percentile_ms(counts: list[int], rank: float) -> float:
    """The duration of the attempt with this rank, as if those of a bucket were spread evenly."""
    passed = 0
    for bucket, count in enumerate(counts):
        if count and passed + count >= rank:
            low, high = _start_ms(bucket), _start_ms(bucket + 1)
            return round(low + (high - low) * (rank - passed) / count, 3)
        passed += count
    return _start_ms(_BUCKETS)


def _start_ms(bucket: int) -> float:
    """The shortest duration of a bucket."""
    if bucket == 0:
        return 0.0
    return float(2.0 ** ((_SHIFT + bucket - 1) / 2)) / MICROSECONDS_PER_MS
