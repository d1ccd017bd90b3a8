"""Time zones, and instants in them."""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from duetime.domain.instants import Instant, datetime_of

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})", re.ASCII)


def find_zone(name: str) -> tzinfo | None:
    """A zone of the IANA database, or an offset such as +02:00; None if it is not known."""
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return timezone(-span if offset[1] == "-" else span)
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def instant_in_words(instant: Instant, zone: str = "UTC") -> str:
    """Such as "Tuesday 17 Nov 2026, 16:30:00 Europe/Berlin (15:30:00 UTC)". A zone that is not
    known is left out."""
    moment = datetime_of(instant)
    decimals = f".{moment.microsecond // 1_000:03d}" if moment.microsecond else ""
    try:
        local = moment.astimezone(find_zone(zone) or UTC)
    except OverflowError:
        local = moment
    if local.replace(tzinfo=None) == moment.replace(tzinfo=None):
        return f"{moment:%A} {moment.day} {moment:%b %Y, %H:%M:%S}{decimals} UTC"
    date = "" if local.date() == moment.date() else f"{moment:%A} {moment.day} {moment:%b}, "
    return (
        f"{local:%A} {local.day} {local:%b %Y, %H:%M:%S}{decimals} {zone}"
        f" ({date}{moment:%H:%M:%S} UTC)"
    )
