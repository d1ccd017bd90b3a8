"""The query parameters of the list of timers, and the cursors that lead on."""

import struct
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import blake2b

from msgspec import UNSET, json
from msgspec.structs import replace

from duetime.api.http.instant_text import parse_instant
from duetime.api.http.query import choice, number, parameters
from duetime.api.platform.query import ORDERS, STATUSES
from duetime.api.v1.requests import namespace_of
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.ports.store import Position, ScanQuery

DEFAULT_LIMIT = 50
MAX_LIMIT = 1_000

_NAMESPACE = frozenset({"namespace", "groupId"})
KNOWN = _NAMESPACE | {"status", "dueAfter", "dueBefore", "cursor", "limit", "order"}

# Of which list, and where in it. The text of thirty bytes needs no padding.
_CURSOR = struct.Struct(">6sq16s")
_LIST_BYTES = 6


def parse_listing(query_string: bytes) -> ScanQuery:
    """Raises `InvalidInput` that names the parameter."""
    given = parameters(query_string, KNOWN)
    status, cursor = given.get("status"), given.get("cursor")
    query = ScanQuery(
        namespace=_namespace_in(given),
        status=None if status is None else choice("status", status, STATUSES),
        execute_from_inclusive=_instant_or_none("dueAfter", given.get("dueAfter")),
        execute_until_exclusive=_instant_or_none("dueBefore", given.get("dueBefore")),
        descending=choice("order", given.get("order", "asc"), ORDERS),
        limit=number("limit", given.get("limit"), DEFAULT_LIMIT, 1, MAX_LIMIT),
    )
    return query if cursor is None else replace(query, after_exclusive=_position(cursor, query))


def parse_import(query_string: bytes) -> str | None:
    """The namespace for lines that do not name one, if there is one. Raises `InvalidInput`."""
    given = parameters(query_string, _NAMESPACE)
    return _namespace_in(given) if given else None


def cursor_of(last: Position, query: ScanQuery) -> str:
    """Where the list goes on of which a page ended there."""
    packed = _CURSOR.pack(_list_digest(query), last.execute_at, last.timer_uuid)
    return urlsafe_b64encode(packed).decode()


def _namespace_in(given: Mapping[str, str]) -> str:
    return namespace_of(given.get("namespace", UNSET), given.get("groupId", UNSET))


def _position(cursor: str, query: ScanQuery) -> Position:
    try:
        digest, execute_at, timer_uuid = _CURSOR.unpack(b64decode(cursor, b"-_", validate=True))
    except (ValueError, struct.error):
        raise InvalidInput("cursor", "must be the nextCursor of a page before") from None
    if digest != _list_digest(query):
        problem = (
            "is of another list: namespace, status, dueAfter, dueBefore and order must be those "
            "of the page before"
        )
        raise InvalidInput("cursor", problem)
    return Position(Instant(execute_at), timer_uuid)


def _list_digest(query: ScanQuery) -> bytes:
    """Tells the pages of one list from those of another, however long they are. Every node makes
    the same."""
    told = (
        query.namespace,
        query.status,
        query.execute_from_inclusive,
        query.execute_until_exclusive,
        query.descending,
    )
    return blake2b(json.encode(told), digest_size=_LIST_BYTES).digest()


def _instant_or_none(name: str, text: str | None) -> Instant | None:
    if text is None:
        return None
    # In a query a plus that was not encoded is a space; one after the date may be meant so.
    date, time = text[:11], text[11:]
    return parse_instant(name, date + time.replace(" ", "+"))
