"""Instants as clients write them."""

from duetime.domain import instants
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant


def parse_instant(field: str, text: str) -> Instant:
    """The instant of an ISO 8601 date and time with an offset. Raises `InvalidInput`."""
    try:
        return instants.parse_instant(text)
    except ValueError as error:
        raise InvalidInput(field, str(error)) from None
