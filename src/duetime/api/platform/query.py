"""The query parameters of the list of timers."""

from duetime.api.http.query import choice, number, parameters
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import TimerStatus
from duetime.ports.store import PageQuery, SortField

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_OFFSET = 2**63 - 1

STATUSES = {status.label: status for status in TimerStatus}
SORT_FIELDS = {field.value: field for field in SortField}
ORDERS = {"asc": False, "desc": True}

_KNOWN = frozenset({"status", "limit", "offset", "sort", "order"})


def parse_query(query_string: bytes) -> PageQuery:
    """Raises `InvalidInput` that names the parameter."""
    given = parameters(query_string, _KNOWN)
    status = given.get("status")
    return PageQuery(
        namespace=DEFAULT_NAMESPACE,
        status=None if status is None else choice("status", status, STATUSES),
        sort=choice("sort", given.get("sort", "created_at"), SORT_FIELDS),
        descending=choice("order", given.get("order", "desc"), ORDERS),
        limit=number("limit", given.get("limit"), DEFAULT_LIMIT, 1, MAX_LIMIT),
        offset=number("offset", given.get("offset"), 0, 0, MAX_OFFSET),
    )
