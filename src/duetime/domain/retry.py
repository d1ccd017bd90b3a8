"""Retry policies: whether and when a failed attempt is repeated."""

from msgspec import Struct

JITTER = 0.2
"""Share by which a delay is stretched at most, so that timers that failed together come back
spread out. A delay never shrinks: a retry is never earlier than its interval."""


class RetryPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The number, the time span and the intervals of the retries of a failing callback.

    `max_interval_ms` bounds an interval before jitter. No retry is planned later than
    `max_duration_ms` after the first attempt was made: a timer that a long outage made late still
    has all its retries.
    """

    max_retries: int = 3
    max_duration_ms: int = 86_400_000
    initial_interval_ms: int = 30_000
    backoff_multiplier: float = 2.0
    max_interval_ms: int = 600_000

    def interval_ms(self, failures: int) -> float:
        """The wait after the given number of failures (1 or more), before jitter."""
        try:
            grown = self.initial_interval_ms * self.backoff_multiplier ** (failures - 1)
        except OverflowError:
            return self.max_interval_ms
        return min(grown, self.max_interval_ms)

    def delay_ms(self, failures: int, chance: float, retry_after_ms: int | None = None) -> float:
        """The wait before the next attempt.

        `chance` is a random number from 0 up to 1. `retry_after_ms` is the delay that the endpoint
        asked for; it is honoured when it is longer than the interval, up to `max_interval_ms`.
        """
        interval = self.interval_ms(failures)
        if retry_after_ms is not None:
            interval = max(interval, min(retry_after_ms, self.max_interval_ms))
        return interval * (1 + JITTER * chance)


UNTIL_DELIVERED = RetryPolicy(
    max_retries=1_000_000_000,
    max_duration_ms=100 * 365 * 86_400_000,
    initial_interval_ms=100,
    max_interval_ms=5_000,
)
"""The policy of bus events, which are never given up: the broker is expected to come back."""
