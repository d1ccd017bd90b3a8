"""Instants and durations.

An `Instant` is a whole number of microseconds since 1970-01-01T00:00:00Z. Integers compare,
sort, store and travel exactly; `datetime` appears only where text is read or written.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType

from msgspec import Struct

from duetime.domain.limits import MAX_DURATION_CHARACTERS, MAX_INSTANT_CHARACTERS

Instant = NewType("Instant", int)


class Delay(Struct, frozen=True, gc=False):
    """An instant as the time from now on, which the service adds to its own clock."""

    ms: int


MICROSECONDS_PER_MS = 1_000
MICROSECONDS_PER_SECOND = 1_000_000

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NAIVE_EPOCH = EPOCH.replace(tzinfo=None)
_read_iso = datetime.fromisoformat

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def instant_of(moment: datetime) -> Instant:
    """The instant of an aware datetime. A naive one is a TypeError."""
    return Instant((moment - EPOCH) // _MICROSECOND)


def datetime_of(instant: Instant) -> datetime:
    return EPOCH + timedelta(microseconds=instant)


def format_instant(instant: Instant) -> str:
    """ISO 8601 in UTC, with as many decimals as the instant needs: none, three or six."""
    seconds, microseconds = divmod(instant, MICROSECONDS_PER_SECOND)
    if microseconds == 0:
        return _second_text(seconds) + "Z"
    milliseconds, rest = divmod(microseconds, MICROSECONDS_PER_MS)
    decimals = f"{microseconds:06d}" if rest else f"{milliseconds:03d}"
    return f"{_second_text(seconds)}.{decimals}Z"


@lru_cache(1_024)
def _second_text(seconds: int) -> str:
    # Cached, because the instants of a busy service lie close together and the calendar takes two
    # thirds of the time.
    return (_NAIVE_EPOCH + timedelta(0, seconds)).isoformat()


def parse_instant(text: str) -> Instant:
    """The instant of an ISO 8601 date and time with an offset.

    Raises ValueError with a message for the person who wrote the text.
    """
    try:
        if len(text) > MAX_INSTANT_CHARACTERS or not ("T" in text or "t" in text or " " in text):
            raise ValueError
        # The same as `instant_of`, without the call: this runs for every timer.
        return Instant((_read_iso(text) - EPOCH) // _MICROSECOND)
    except ValueError:
        problem = "must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z"
        raise ValueError(problem) from None
    except TypeError:
        raise ValueError("must have a UTC offset, such as 2026-01-01T12:00:00Z") from None


def plus_ms(instant: Instant, duration_ms: float) -> Instant:
    return Instant(instant + round(duration_ms * MICROSECONDS_PER_MS))


def due_instant(asked: Instant | Delay, now: Instant) -> Instant:
    """The instant that a client asked for, in either form."""
    return plus_ms(now, asked.ms) if isinstance(asked, Delay) else asked


def parse_duration_ms(text: str) -> int:
    """Milliseconds of a duration such as "500ms", "30s", "10m", "1h30m" or "7d".

    Raises ValueError with a message for the person who wrote the text.
    """
    if len(text) > MAX_DURATION_CHARACTERS or not _DURATION.fullmatch(text):
        raise ValueError('must be a duration such as "500ms", "30s", "1h30m" or "7d"')
    return round(
        sum(float(number) * _UNIT_MS[unit] for number, unit in _DURATION_PART.findall(text))
    )


def format_duration(duration_ms: int) -> str:
    """Text in descending units, such as "1m30s", that `parse_duration_ms` reads back.

    Only two or more whole days are written in days; one day is "24h".
    """
    if duration_ms == 0:
        return "0s"
    days, rest_ms = divmod(duration_ms, _UNIT_MS["d"])
    if days > 1 and rest_ms == 0:
        return f"{days}d"
    parts = []
    for unit in ("h", "m", "s", "ms"):
        count, duration_ms = divmod(duration_ms, _UNIT_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
