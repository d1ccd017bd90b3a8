"""Instants and durations as people write them."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Delay, Instant, instant_of, parse_instant

EXAMPLES = "such as “in 15 min”, 2030-01-31T12:00:00Z or 2030-01-31 12:00 Europe/Berlin"

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
_MAX_CHARACTERS = 80


def read_due(field: str, text: str) -> Instant | Delay:
    """An instant with its zone, or a duration from now on. Raises `InvalidInput`."""
    text = text.strip()
    if len(text) <= _MAX_CHARACTERS:
        delay_ms = _duration_ms(text.lower().removeprefix("in "))
        if delay_ms is not None:
            return Delay(delay_ms)
        instant = _instant(field, text)
        if instant is not None:
            return instant
    raise InvalidInput(field, f"must be an instant with a zone, or a duration, {EXAMPLES}")


def read_duration_ms(field: str, text: str) -> int:
    """A duration such as "15 min" or "1h30m", below zero with a minus. Raises `InvalidInput`."""
    text = text.strip().lower()
    digits = text.lstrip("+-").strip()
    duration_ms = _duration_ms(digits) if len(text) <= _MAX_CHARACTERS else None
    if duration_ms is None:
        raise InvalidInput(field, "must be a duration, such as “15 min” or “1 h 30 min”")
    return -duration_ms if text.startswith("-") else duration_ms


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


def _instant(field: str, text: str) -> Instant | None:
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
    if named is None:
        problem = "must have a zone: add Z for UTC, an offset such as +02:00, or a name"
        raise InvalidInput(field, problem)
    zone = _zone(field, named[2])
    placed = moment.replace(tzinfo=zone)
    try:
        exists = placed.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == moment
    except OverflowError:
        return None
    if not exists:
        raise InvalidInput(field, "does not exist in that zone: the clocks are set forward then")
    return instant_of(placed)


def _zone(field: str, name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidInput(field, f"has a zone that this server does not know: {name}") from None
