"""Instants as people type them: "in 15 min", or a date and time in a zone."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Delay, Instant, instant_of
from duetime.domain.limits import MAX_DURATION_CHARACTERS

ZONES = (
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Africa/Lagos",
    "Africa/Johannesburg",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Pacific/Auckland",
)
"""Zones that the form suggests. Every other one may be typed."""

_UNIT_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_PART = re.compile(
    r"\s*(?P<number>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>milliseconds?|msecs?|ms|seconds?|secs?|s"
    r"|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)\b\s*,?(?:\s*and\b)?",
    re.ASCII | re.IGNORECASE,
)
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})", re.ASCII)
_LONGEST_MS = 400 * 365 * 86_400_000


class TwiceThere(InvalidInput):
    """A local time that comes twice, because clocks are set back. `choices` are the offsets of the
    first and the second."""

    def __init__(self, field: str, text: str, zone: str, choices: tuple[str, str]) -> None:
        super().__init__(
            field, f"comes twice in {zone}, because clocks are set back: choose which {text} it is"
        )
        self.choices = choices


class LocalTime(NamedTuple):
    """The fields of an absolute instant. `occurrence` is `first` or `second` of a local time that
    comes twice, if the user chose one."""

    text: str
    zone: str
    occurrence: str | None = None


def parse_delay(text: str) -> Delay:
    """The delay in words such as "in 15 min". Raises `InvalidInput`."""
    return Delay(parse_span_ms("in", text))


def parse_span_ms(field: str, text: str) -> int:
    """Milliseconds of a time such as "15 min", "1 h 30 min" or "90s". Raises `InvalidInput`."""
    rest = text.strip().lower().removeprefix("in ").strip()
    # "1h30m" has no space between its parts.
    rest = re.sub(r"(?<=[a-z])(?=\d)", " ", rest)
    total_ms, is_read = 0.0, 0 < len(rest) <= 2 * MAX_DURATION_CHARACTERS
    while is_read and rest:
        found = _PART.match(rest)
        is_read = found is not None
        if found is not None:
            total_ms += float(found["number"]) * _UNIT_MS[_unit_of(found["unit"])]
            rest = rest[found.end() :]
    if not is_read or total_ms > _LONGEST_MS:
        raise InvalidInput(field, 'must be a time such as "15 min", "1 h 30 min" or "10s"')
    return round(total_ms)


def _unit_of(word: str) -> str:
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def parse_local_time(given: LocalTime) -> Instant:
    """Raises `InvalidInput`, also for times that clocks skip, and `TwiceThere`."""
    zone = _zone_of(given.zone)
    try:
        local = datetime.fromisoformat(given.text)
        if local.tzinfo is not None:
            return instant_of(local)
        first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        offsets = first.utcoffset(), second.utcoffset()
        exists = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
    except (ValueError, OverflowError):
        raise InvalidInput("at", "must be a date and a time, such as 2030-01-31 12:00") from None
    if offsets[0] == offsets[1]:
        return instant_of(first)
    if not exists:
        problem = f"does not exist in {given.zone}: clocks are set forward, and skip it"
        raise InvalidInput("at", problem)
    if given.occurrence not in ("first", "second"):
        choices = f"first ({_offset_text(first)})", f"second ({_offset_text(second)})"
        raise TwiceThere("at", f"{local:%H:%M}", given.zone, choices)
    return instant_of(first if given.occurrence == "first" else second)


def _zone_of(name: str) -> tzinfo:
    """A zone of the IANA database, or an offset such as +02:00. Raises `InvalidInput`."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return timezone(-span if offset[1] == "-" else span)
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        problem = "is not a time zone that this machine knows, such as Europe/Berlin or UTC"
        raise InvalidInput("zone", problem) from None


def _offset_text(moment: datetime) -> str:
    return f"UTC{moment:%z}"
