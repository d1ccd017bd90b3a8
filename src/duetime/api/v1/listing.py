"""The query parameters of lists and imports, and the cursors of pages."""

import struct
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import blake2b

from msgspec import UNSET, json
from msgspec.structs import replace
from starlette.types import Scope

from duetime.api.http.caller import caller_of
from duetime.api.http.operation import Json, Parameter, choice_parameter, number_parameter
from duetime.api.http.query import choice, number, parameters
from duetime.api.http.secrets_parameter import SECRETS, asks_for_secrets
from duetime.api.http.types import INSTANT, KEY_LENGTH
from duetime.api.http.values import ORDERS, STATUSES, parse_instant
from duetime.api.v1.requests import namespace_of
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.store import Position, ScanQuery

_NAMESPACE: Json = {"type": "string", **KEY_LENGTH}
_INSTANT: Json = {"type": "string", **INSTANT}
_GROUP_ID = Parameter("groupId", "An older name for `namespace`.", _NAMESPACE)

LIST_PARAMETERS = (
    Parameter("namespace", "An existing namespace.", {**_NAMESPACE, "default": DEFAULT_NAMESPACE}),
    _GROUP_ID,
    choice_parameter("status", "Only timers with this status.", STATUSES),
    Parameter("dueAfter", "Only timers with an `executeAt` at or after this instant.", _INSTANT),
    Parameter("dueBefore", "Only timers with an `executeAt` before this instant.", _INSTANT),
    Parameter("cursor", "The `nextCursor` of the page before.", {"type": "string"}),
    number_parameter("limit", "Timers on a page.", 1, MAX_V1_PAGE_TIMERS, DEFAULT_PAGE_TIMERS),
    choice_parameter("order", "Ascending or descending.", ORDERS, "asc"),
    SECRETS,
)
IMPORT_PARAMETERS = (
    Parameter("namespace", "The namespace of lines that do not name one.", _NAMESPACE),
    _GROUP_ID,
)
_LIST_NAMES = frozenset(parameter.name for parameter in LIST_PARAMETERS)
_IMPORT_NAMES = frozenset(parameter.name for parameter in IMPORT_PARAMETERS)

# Digest of the list, instant and uuid of the page's last entry: 30 bytes, which need no padding.
_CURSOR = struct.Struct(">6sq16s")
_LIST_BYTES = 6


def parse_listing(scope: Scope) -> tuple[ScanQuery, bool]:
    """The query, and whether it asks for secrets. Raises `InvalidInput` that names the parameter,
    `NamespaceNotFound`, and `Forbidden`."""
    given = parameters(scope["query_string"], _LIST_NAMES)
    status, cursor = given.get("status"), given.get("cursor")
    query = ScanQuery(
        namespace=_namespace_in(given),
        status=None if status is None else choice("status", status, STATUSES),
        execute_from_inclusive=instant_in_query("dueAfter", given.get("dueAfter")),
        execute_until_exclusive=instant_in_query("dueBefore", given.get("dueBefore")),
        descending=choice("order", given.get("order", "asc"), ORDERS),
        limit=number("limit", given.get("limit"), DEFAULT_PAGE_TIMERS, 1, MAX_V1_PAGE_TIMERS),
    )
    if cursor is not None:
        query = replace(query, after_exclusive=_position(cursor, query))
    caller_of(scope).reach(query.namespace)
    return query, asks_for_secrets(scope, given)


def parse_import(query_string: bytes) -> str | None:
    """The namespace of lines that do not name one, or None. Raises `InvalidInput`."""
    given = parameters(query_string, _IMPORT_NAMES)
    return _namespace_in(given) if given else None


def cursor_of(last: Position, query: ScanQuery) -> str:
    """Cursor for the page after `last`."""
    return pack_cursor(_filters(query), last.execute_at, last.timer_uuid)


def pack_cursor(filters: object, at: Instant, uuid: bytes) -> str:
    """Cursor for the page after the thing of this instant and uuid, in the list of the filters."""
    return urlsafe_b64encode(_CURSOR.pack(_list_digest(filters), at, uuid)).decode()


def unpack_cursor(cursor: str, filters: object, names: str) -> tuple[Instant, bytes]:
    """The instant and the uuid. Raises `InvalidInput`, also for the cursor of a list with other
    filters; `names` are those of the parameters that must be the same."""
    try:
        digest, at, uuid = _CURSOR.unpack(b64decode(cursor, b"-_", validate=True))
    except (ValueError, struct.error):
        raise InvalidInput("cursor", "must be the nextCursor of an earlier page") from None
    if digest != _list_digest(filters):
        problem = f"is of another list: {names} must be the same on every page"
        raise InvalidInput("cursor", problem)
    return Instant(at), uuid


def _namespace_in(given: Mapping[str, str]) -> str:
    return namespace_of(given.get("namespace", UNSET), given.get("groupId", UNSET))


def _position(cursor: str, query: ScanQuery) -> Position:
    names = "namespace, status, dueAfter, dueBefore and order"
    return Position(*unpack_cursor(cursor, _filters(query), names))


def _filters(query: ScanQuery) -> object:
    return (
        query.namespace,
        query.status,
        query.execute_from_inclusive,
        query.execute_until_exclusive,
        query.descending,
    )


def _list_digest(filters: object) -> bytes:
    """Identifies the list that a page belongs to, in the same way on every node."""
    return blake2b(json.encode(filters), digest_size=_LIST_BYTES).digest()


def instant_in_query(name: str, text: str | None) -> Instant | None:
    if text is None:
        return None
    # An unencoded plus reads as a space in a query. After the date it can only be the offset's.
    date, time = text[:11], text[11:]
    return parse_instant(name, date + time.replace(" ", "+"))
