"""Instants, durations and counts in words."""

from itertools import pairwise

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, parse_instant

_UNITS = (("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000))


def span(duration_ms: float) -> str:
    """A duration in its largest fitting unit, e.g. "850 ms", "9 s", "1.5 h". A value that would
    round to 60 min is 1 h."""
    for (unit, unit_ms), (_, next_ms) in pairwise(_UNITS):
        count = _rounded(duration_ms, unit_ms)
        if count * unit_ms < next_ms:
            return f"{count:g} {unit}"
    unit, unit_ms = _UNITS[-1]
    return f"{_rounded(duration_ms, unit_ms):.12g} {unit}"


def _rounded(duration_ms: float, unit_ms: int) -> float:
    """Rounded to tenths below 10, else to whole numbers."""
    count = duration_ms / unit_ms
    return round(count, 1 if count < 10 and unit_ms > 1 else 0)


def counted(count: int, noun: str) -> str:
    """A number with its noun, e.g. "1 timer", "1,234 timers"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def relative(instant: Instant, now: Instant) -> str:
    """An instant relative to now: "in 9 s" or "3 min ago"."""
    distance_ms = abs(instant - now) / MICROSECONDS_PER_MS
    if distance_ms < 1:
        return "now"
    return f"in {span(distance_ms)}" if instant > now else f"{span(distance_ms)} ago"


def relative_text(text: object, now: Instant) -> str:
    """As `relative`, for an instant in ISO 8601; "-" for anything else."""
    try:
        return relative(parse_instant(str(text)), now)
    except ValueError:
        return "-"


def lateness(lateness_ms: float | None) -> str:
    """Lateness in words: "1.2 ms late", "0.3 ms early", or "-" if it is not known."""
    if lateness_ms is None:
        return "-"
    distance_ms = abs(lateness_ms)
    size = f"{distance_ms:.1f} ms" if distance_ms < 1_000 else span(distance_ms)
    return f"{size} {'late' if lateness_ms >= 0 else 'early'}"
