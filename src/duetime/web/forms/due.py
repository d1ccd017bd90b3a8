"""Instants and durations as people write them."""

import re
from datetime import UTC, datetime, tzinfo

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import (
    MICROSECONDS_PER_MS,
    Delay,
    Instant,
    instant_of,
    parse_instant,
    plus_ms,
)
from duetime.domain.limits import MAX_DELAY_MICROSECONDS
from duetime.web.forms.zones import find_zone

EXAMPLES = (
    "such as “in 15 min”, “24 h ago”, now-1h, 2030-01-31, 2030-01-31 12:00, 2030-01-31T12:00:00Z "
    "or 2030-01-31 12:00 Europe/Berlin"
)
DURATION_EXAMPLES = "such as “15 min” or “1 h 30 min”"

_UNIT_MS = {
    ("ms", "millisecond", "milliseconds"): 1,
    ("s", "sec", "secs", "second", "seconds"): 1_000,
    ("m", "min", "mins", "minute", "minutes"): 60_000,
    ("h", "hr", "hrs", "hour", "hours"): 3_600_000,
    ("d", "day", "days"): 86_400_000,
    ("w", "week", "weeks"): 7 * 86_400_000,
}
_MS = {word: ms for words, ms in _UNIT_MS.items() for word in words}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*(?:,|and\b)?\s*", re.ASCII)
_WITH_ZONE = re.compile(r"(\S+(?:[T ]\S+)?)\s+([A-Za-z][A-Za-z0-9_+/-]*)")
_FROM_NOW = re.compile(r"now(?:\s*([+ -])\s*(.+))?")
_AGO = re.compile(r"()(.+?)\s*ago")
_LOST_PLUS = re.compile(r"(\d\d:\d\d(?::\d\d(?:\.\d+)?)?) (\d\d:\d\d)$", re.ASCII)
_MAX_CHARACTERS = 80

# An offset may lead beyond the calendar, where no instant can be written.
_FIRST = instant_of(datetime.min.replace(tzinfo=UTC))
_LAST = instant_of(datetime.max.replace(tzinfo=UTC))


def read_due(field: str, text: str, now: Instant, zone: str | None = None) -> Instant | Delay:
    """An instant, or a duration from now on. Raises `InvalidInput`. `zone` is that of a time that
    names none; without it, such a time is in UTC."""
    text = text.strip()
    if len(text) <= _MAX_CHARACTERS:
        delay_ms = _duration_ms(text.lower().removeprefix("in "))
        if delay_ms is not None:
            return Delay(delay_ms)
        instant = _relative(field, text.lower(), now)
        if instant is None:
            instant = _absolute(field, text, zone)
        if instant is not None and _FIRST <= instant <= _LAST:
            return instant
    raise InvalidInput(field, f"must be an instant, {EXAMPLES}")


def read_instant(
    field: str, text: str, now: Instant, zone: str | None = None, *, is_past: bool = False
) -> Instant:
    """The same as an instant. A duration alone counts from now on, or back from now if
    `is_past`."""
    due = read_due(field, text, now, zone)
    if not isinstance(due, Delay):
        return due
    is_before = is_past and not text.strip().lower().startswith("in ")
    return _away(field, now, -due.ms if is_before else due.ms)


def read_duration_ms(field: str, text: str) -> int:
    """A duration such as "15 min" or "1h30m", below zero with a minus. Raises `InvalidInput`."""
    text = text.strip().lower()
    digits = text.lstrip("+-").strip()
    duration_ms = _duration_ms(digits) if len(text) <= _MAX_CHARACTERS else None
    if duration_ms is None:
        raise InvalidInput(field, f"must be a duration, {DURATION_EXAMPLES}")
    return -duration_ms if text.startswith("-") else duration_ms


def read_span_ms(field: str, text: str) -> int:
    """A duration that is not below zero. Raises `InvalidInput`."""
    duration_ms = read_duration_ms(field, text)
    if duration_ms < 0:
        raise InvalidInput(field, "must not be negative")
    return duration_ms


def _duration_ms(text: str) -> int | None:
    """The milliseconds of one or more numbers with units; None for anything else."""
    total_ms, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part[2] not in _MS:
            return None
        total_ms += float(part[1]) * _MS[part[2]]
        position = part.end()
    return round(total_ms) if position else None


def _relative(field: str, text: str, now: Instant) -> Instant | None:
    """The instant of `now`, `now+1h`, `now-15m` or `24 h ago`; None for anything else. An unencoded
    plus in an address reads as a space."""
    found = _FROM_NOW.fullmatch(text) or _AGO.fullmatch(text)
    if found is None:
        return None
    sign, duration = found[1], found[2]
    duration_ms = 0 if duration is None else _duration_ms(duration)
    if duration_ms is None:
        return None
    return _away(field, now, duration_ms if sign in ("+", " ") else -duration_ms)


def _away(field: str, now: Instant, ms: int) -> Instant:
    if abs(ms) * MICROSECONDS_PER_MS > MAX_DELAY_MICROSECONDS:
        raise InvalidInput(field, "is too long ago" if ms < 0 else "is too far away")
    return plus_ms(now, ms)


def _absolute(field: str, text: str, default_zone: str | None) -> Instant | None:
    text = _LOST_PLUS.sub(r"\1+\2", text)
    try:
        return parse_instant(text)
    except ValueError:
        pass
    named = _WITH_ZONE.fullmatch(text)
    try:
        moment = datetime.fromisoformat(named[1] if named else text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    zone = _zone(field, named[2] if named else default_zone or "UTC")
    placed = moment.replace(tzinfo=zone)
    try:
        exists = placed.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == moment
    except OverflowError:
        return None
    if not exists:
        raise InvalidInput(field, "does not exist in that zone: the clocks are set forward then")
    return instant_of(placed)


def _zone(field: str, name: str) -> tzinfo:
    zone = find_zone(name)
    if zone is None:
        raise InvalidInput(field, f"has a zone that this server does not know: {name}")
    return zone
