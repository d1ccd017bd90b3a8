"""Measures the distance of the store's clock from this machine's."""

from collections import deque

import structlog

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant

_log = structlog.get_logger()

SAMPLES = 16
LOG_AGAIN_SECONDS = 60.0


class ClockWatch:
    """Keeps the latest measurements; the most precise one counts.

    The store reads its clock at some point between the question and the answer: the shorter that
    takes, the more precise the measurement.
    """

    def __init__(self, limit_ms: float) -> None:
        self._limit_ms = limit_ms
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._logged_at_seconds: float | None = None

    @property
    def offset_ms(self) -> float | None:
        """Distance by which the store's clock is ahead; None before the first measurement."""
        return min(self._samples)[1] if self._samples else None

    @property
    def ahead_ms(self) -> float | None:
        """Distance by which this machine's clock is ahead of the store's; None within the limit."""
        offset_ms = self.offset_ms
        return None if offset_ms is None or not self.is_skewed else -offset_ms

    @property
    def is_skewed(self) -> bool:
        """Whether the clock is off by more than the limit, allowing for uncertainty."""
        if not self._samples:
            return False
        uncertainty_ms, offset_ms = min(self._samples)
        return abs(offset_ms) - uncertainty_ms > self._limit_ms

    def measured(
        self, asked_at: Instant, answered_at: Instant, store_now: Instant, now_seconds: float
    ) -> None:
        uncertainty_ms = abs(answered_at - asked_at) / 2 / MICROSECONDS_PER_MS
        offset_ms = (store_now - (asked_at + answered_at) / 2) / MICROSECONDS_PER_MS
        if self._samples:
            last_uncertainty_ms, last_offset_ms = self._samples[-1]
            doubt_ms = uncertainty_ms + last_uncertainty_ms
            if abs(offset_ms - last_offset_ms) - doubt_ms > self._limit_ms:
                # One of the clocks was set, so the earlier samples are worthless.
                self._samples.clear()
        self._samples.append((uncertainty_ms, offset_ms))
        if self.is_skewed and self._is_time_to_log(now_seconds):
            _log.error(
                "clock.skewed",
                store_ahead_ms=round(offset_ms, 1),
                limit_ms=self._limit_ms,
                advice="timers fire by this machine's clock: synchronise it (NTP)",
            )

    def _is_time_to_log(self, now_seconds: float) -> bool:
        logged_at = self._logged_at_seconds
        if logged_at is not None and now_seconds - logged_at < LOG_AGAIN_SECONDS:
            return False
        self._logged_at_seconds = now_seconds
        return True
