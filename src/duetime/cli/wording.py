"""Instants and spans of time as people say them."""

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def span(duration_ms: float) -> str:
    """A span with its largest fitting unit, e.g. "850 ms", "9 s", "1.5 h"."""
    for unit, unit_ms in _UNITS:
        if duration_ms >= unit_ms:
            count = duration_ms / unit_ms
            return (
                f"{count:.1f}".removesuffix(".0") + f" {unit}"
                if count < 10
                else (f"{count:.0f} {unit}")
            )
    return f"{duration_ms:.0f} ms"


def counted(count: int, noun: str) -> str:
    """A number of things, e.g. "1 timer", "1,234 timers"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def relative(instant: Instant, now: Instant) -> str:
    """An instant seen from now: "in 9 s" or "3 min ago"."""
    distance_ms = abs(instant - now) / MICROSECONDS_PER_MS
    if distance_ms < 1:
        return "now"
    return f"in {span(distance_ms)}" if instant > now else f"{span(distance_ms)} ago"


def lateness(lateness_ms: float | None) -> str:
    """How late something was: "1.2 ms late", "0.3 ms early", or "-" if nobody knows."""
    if lateness_ms is None:
        return "-"
    distance_ms = abs(lateness_ms)
    size = f"{distance_ms:.1f} ms" if distance_ms < 1_000 else span(distance_ms)
    return f"{size} {'late' if lateness_ms >= 0 else 'early'}"
