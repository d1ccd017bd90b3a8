"""The members of a timer's metadata, as filters compare them."""

from decimal import Decimal
from functools import lru_cache

from msgspec import DecodeError, Raw
from msgspec.json import Decoder, Encoder

_members = Decoder(dict[str, Raw])
_values = Decoder(float_hook=Decimal)
"""Keeps long numbers exactly."""
_canonical = Encoder(order="sorted", decimal_format="number")


def has_member(metadata: Raw | None, key: str, value: str) -> bool:
    """Whether the metadata is an object with a member `key` that is the text `value`, or whose JSON
    is `value`, whatever its spaces and the order of its members. `value` is valid Unicode."""
    if metadata is None:
        return False
    try:
        member = _members.decode(metadata).get(key)
    except DecodeError:
        return False
    if member is None:
        return False
    found = _canonical_of(bytes(member))
    return found is not None and found in _spellings_of(value)


@lru_cache(64)
def _spellings_of(value: str) -> tuple[bytes | None, ...]:
    """The text as a JSON string, and the JSON that the text is if it is any."""
    return _canonical.encode(value), _canonical_of(value.encode())


def _canonical_of(text: bytes) -> bytes | None:
    try:
        return _canonical.encode(_values.decode(text))
    except (DecodeError, RecursionError):
        return None
