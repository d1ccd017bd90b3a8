"""The query parameters of the list of timers, and the cursors that lead on."""

import binascii
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode

from duetime.api.instant_text import parse_instant
from duetime.api.platform_query import ORDERS, STATUSES
from duetime.api.query import choice, number, parameters
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import Timer
from duetime.ports.store import Position, ScanQuery

DEFAULT_LIMIT = 50
MAX_LIMIT = 1_000

KNOWN = frozenset({"namespace", "status", "dueAfter", "dueBefore", "cursor", "limit", "order"})

_CURSOR = struct.Struct(">q16s")


def parse_listing(query_string: bytes) -> ScanQuery:
    """Raises `InvalidInput` that names the parameter."""
    given = parameters(query_string, KNOWN)
    status, cursor = given.get("status"), given.get("cursor")
    return ScanQuery(
        namespace=given.get("namespace", DEFAULT_NAMESPACE),
        status=None if status is None else choice("status", status, STATUSES),
        execute_from_inclusive=_instant_or_none("dueAfter", given.get("dueAfter")),
        execute_until_exclusive=_instant_or_none("dueBefore", given.get("dueBefore")),
        after_exclusive=None if cursor is None else position_of(cursor),
        descending=choice("order", given.get("order", "asc"), ORDERS),
        limit=number("limit", given.get("limit"), DEFAULT_LIMIT, 1, MAX_LIMIT),
    )


def cursor_of(timer: Timer) -> str:
    """Where a list goes on that ended with this timer."""
    return urlsafe_b64encode(_CURSOR.pack(timer.execute_at, timer.timer_uuid)).decode()


def position_of(cursor: str) -> Position:
    try:
        execute_at, timer_uuid = _CURSOR.unpack(urlsafe_b64decode(cursor.encode("ascii")))
    except (UnicodeEncodeError, binascii.Error, struct.error):
        raise InvalidInput("cursor", "must be the nextCursor of a page before") from None
    return Position(Instant(execute_at), timer_uuid)


def _instant_or_none(name: str, text: str | None) -> Instant | None:
    if text is None:
        return None
    # In a query a plus that was not encoded is a space; one after the date may be meant so.
    date, time = text[:11], text[11:]
    return parse_instant(name, date + time.replace(" ", "+"))
