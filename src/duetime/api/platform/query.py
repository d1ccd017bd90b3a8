"""The query parameters of the list of timers."""

from starlette.types import Scope

from duetime.api.http.operation import choice_parameter, number_parameter
from duetime.api.http.query import choice, number, parameters
from duetime.api.http.secrets_parameter import SECRETS, asks_for_secrets
from duetime.api.http.values import ORDERS, STATUSES
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_PAGE_OFFSET, MAX_PLATFORM_PAGE_TIMERS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.store import PageQuery, SortField

_SORT_FIELDS = {field.value: field for field in SortField}

PARAMETERS = (
    choice_parameter("status", "Only timers with this status.", STATUSES),
    number_parameter(
        "limit", "Timers on a page.", 1, MAX_PLATFORM_PAGE_TIMERS, DEFAULT_PAGE_TIMERS
    ),
    number_parameter("offset", "Timers to skip.", 0, MAX_PAGE_OFFSET, 0),
    choice_parameter("sort", "Member to sort by.", _SORT_FIELDS, "created_at"),
    choice_parameter("order", "Ascending or descending.", ORDERS, "desc"),
    SECRETS,
)
_KNOWN = frozenset(parameter.name for parameter in PARAMETERS)


def parse_query(scope: Scope, namespace: str = DEFAULT_NAMESPACE) -> tuple[PageQuery, bool]:
    """The query, and whether it asks for secrets. Raises `InvalidInput` that names the parameter,
    and `Forbidden`."""
    given = parameters(scope["query_string"], _KNOWN)
    status = given.get("status")
    query = PageQuery(
        namespace=namespace,
        status=None if status is None else choice("status", status, STATUSES),
        sort=choice("sort", given.get("sort", "created_at"), _SORT_FIELDS),
        descending=choice("order", given.get("order", "desc"), ORDERS),
        limit=number("limit", given.get("limit"), DEFAULT_PAGE_TIMERS, 1, MAX_PLATFORM_PAGE_TIMERS),
        offset=number("offset", given.get("offset"), 0, 0, MAX_PAGE_OFFSET),
    )
    return query, asks_for_secrets(scope, given)
