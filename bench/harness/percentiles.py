"""Percentiles of durations."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct


class Percentiles(Struct, frozen=True, kw_only=True):
    """Median, 99th percentile and maximum of durations, in milliseconds."""

    p50_ms: float
    p99_ms: float
    max_ms: float


NO_PERCENTILES = Percentiles(p50_ms=0.0, p99_ms=0.0, max_ms=0.0)


def percentile(ascending: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    return ascending[max(0, ceil(share * len(ascending)) - 1)]


def percentiles_of(durations_ms: Sequence[float]) -> Percentiles:
    if not durations_ms:
        return NO_PERCENTILES
    ascending = sorted(durations_ms)
    return Percentiles(
        p50_ms=round(percentile(ascending, 0.50), 3),
        p99_ms=round(percentile(ascending, 0.99), 3),
        max_ms=round(ascending[-1], 3),
    )
