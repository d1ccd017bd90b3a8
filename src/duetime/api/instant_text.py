"""Instants as clients write them."""

from datetime import datetime

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, instant_of

MAX_CHARACTERS = 64


def parse_instant(field: str, text: str) -> Instant:
    """The instant of an ISO 8601 date and time with an offset. Raises `InvalidInput`."""
    try:
        if len(text) > MAX_CHARACTERS or not ("T" in text or "t" in text or " " in text):
            raise ValueError
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = "must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z"
        raise InvalidInput(field, problem) from None
    if moment.tzinfo is None:
        raise InvalidInput(field, "must have a UTC offset, such as 2026-01-01T12:00:00Z")
    return instant_of(moment)
