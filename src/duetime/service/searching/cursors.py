"""Cursors as text, for the address of a page."""

from base64 import b64decode, b64encode, urlsafe_b64encode

import msgspec

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.limits import MAX_KEY_CHARACTERS
from duetime.service.searching.search import Cursor, SearchOrder
from duetime.service.validation import check_storable_text

_MAX_CHARACTERS = 4_096
_UUID_BYTES = 16
_PROBLEM = "must be one that a page of this search gave: begin at the first page"


class _Packed(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The order, so that the cursor of another order is noticed."""

    order: SearchOrder
    is_before: bool
    at: int | str | None
    beside: str | None


_decode = msgspec.json.Decoder(_Packed).decode


def cursor_text(cursor: Cursor, order: SearchOrder) -> str:
    at, beside = cursor.place or (None, None)
    if isinstance(beside, bytes):
        beside = b64encode(beside).decode()
    packed = _Packed(order, cursor.is_before, at, beside)
    return urlsafe_b64encode(msgspec.json.encode(packed)).decode().rstrip("=")


def parse_cursor(text: str, order: SearchOrder) -> Cursor:
    """Raises `InvalidInput`, also for the cursor of another order."""
    if len(text) > _MAX_CHARACTERS:
        raise InvalidInput("cursor", _PROBLEM)
    try:
        packed = _decode(b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
    except (ValueError, msgspec.DecodeError):
        raise InvalidInput("cursor", _PROBLEM) from None
    if packed.order is not order:
        raise InvalidInput("cursor", "is of a list in another order: begin at the first page")
    if packed.at is None:
        return Cursor(None, packed.is_before)
    if order is SearchOrder.ID:
        return Cursor((_text(packed.at), _text(packed.beside)), packed.is_before)
    if not isinstance(packed.at, int) or not -(2**63) <= packed.at < 2**63:
        raise InvalidInput("cursor", _PROBLEM)
    return Cursor((Instant(packed.at), _uuid(packed.beside)), packed.is_before)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_KEY_CHARACTERS:
        raise InvalidInput("cursor", _PROBLEM)
    check_storable_text("cursor", value)
    return value


def _uuid(value: object) -> bytes:
    try:
        uuid = b64decode(value, validate=True) if isinstance(value, str) else b""
    except ValueError:
        raise InvalidInput("cursor", _PROBLEM) from None
    if len(uuid) != _UUID_BYTES:
        raise InvalidInput("cursor", _PROBLEM)
    return uuid
