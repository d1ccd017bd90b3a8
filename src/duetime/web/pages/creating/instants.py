"""Local times: a date and a time in a zone, also in the hours in which clocks change."""

from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, instant_of
from duetime.web.forms.zones import find_zone

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


class LocalTime(NamedTuple):
    """A date and a time, in the zone of that name."""

    text: str
    zone: str

    def instants(self) -> tuple[Instant, Instant | None]:
        """The instant, and the second one if the time comes twice. Raises `InvalidInput`, also for
        a time that clocks skip."""
        zone = _zone_of(self.zone)
        try:
            local = datetime.fromisoformat(self.text)
            if local.tzinfo is not None:
                return instant_of(local), None
            first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
            exists = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
            found = instant_of(first), instant_of(second)
        except (ValueError, OverflowError):
            problem = "must be a date and a time, such as 2030-01-31 12:00"
            raise InvalidInput("at", problem) from None
        if not exists:
            problem = f"does not exist in {self.zone}: clocks are set forward, and skip it"
            raise InvalidInput("at", problem)
        return found[0], None if found[0] == found[1] else found[1]


def _zone_of(name: str) -> tzinfo:
    """Raises `InvalidInput`."""
    zone = find_zone(name)
    if zone is None:
        problem = "is not a time zone that this machine knows, such as Europe/Berlin or UTC"
        raise InvalidInput("zone", problem)
    return zone
