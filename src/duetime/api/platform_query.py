"""The query parameters of the list of timers."""

from typing import TypeVar
from urllib.parse import parse_qsl

from duetime.api.decoding import MAX_ECHO_CHARACTERS
from duetime.domain.errors import InvalidInput
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import TimerStatus
from duetime.ports.store import PageQuery, SortField

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_OFFSET = 2**63 - 1

STATUSES = {status.label: status for status in TimerStatus}
SORT_FIELDS = {field.value: field for field in SortField}
ORDERS = {"asc": False, "desc": True}

T = TypeVar("T")

_KNOWN = frozenset({"status", "limit", "offset", "sort", "order"})


def parse_query(query_string: bytes) -> PageQuery:
    """Raises `InvalidInput` that names the parameter."""
    given = _parameters(query_string)
    status = given.get("status")
    return PageQuery(
        namespace=DEFAULT_NAMESPACE,
        status=None if status is None else _choice("status", status, STATUSES),
        sort=_choice("sort", given.get("sort", "created_at"), SORT_FIELDS),
        descending=_choice("order", given.get("order", "desc"), ORDERS),
        limit=_number("limit", given.get("limit"), DEFAULT_LIMIT, 1, MAX_LIMIT),
        offset=_number("offset", given.get("offset"), 0, 0, MAX_OFFSET),
    )


def _parameters(query_string: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50
        )
    except ValueError:
        # Bytes that are no UTF-8, or a flood of parameters.
        raise InvalidInput("query", "cannot be read") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in _KNOWN:
            problem = f"is not a known parameter: there are {', '.join(sorted(_KNOWN))}"
            raise InvalidInput(name[:MAX_ECHO_CHARACTERS], problem)
        if name in given:
            raise InvalidInput(name, "is given more than once")
        given[name] = value
    return given


def _choice(name: str, value: str, choices: dict[str, T]) -> T:
    if value not in choices:
        raise InvalidInput(name, f"must be one of {', '.join(choices)}")
    return choices[value]


def _number(name: str, value: str | None, default: int, low: int, high: int) -> int:
    if value is None:
        return default
    if value.isascii() and value.isdigit() and len(value) <= 19 and low <= int(value) <= high:
        return int(value)
    raise InvalidInput(name, f"must be a whole number from {low} to {high}")
