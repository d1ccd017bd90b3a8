"""The parameters of the timers page, all of which are in its address."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duetime.api.http.query import choice, number
from duetime.api.http.values import STATUSES
from duetime.domain.bulk import TimerFilter
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.limits import DEFAULT_PAGE_TIMERS
from duetime.domain.timer import TimerStatus
from duetime.service.searching.checking import PAGE_SIZES
from duetime.service.searching.cursors import parse_cursor
from duetime.service.searching.search import Cursor, SearchOrder
from duetime.web.pages.filter_fields import filter_fields, filter_in
from duetime.web.pages.timers.columns import COLUMNS, DEFAULT_COLUMNS
from duetime.web.request import Fields

FILTERS = (
    "namespace", "status", "due_from", "due_until", "id_prefix", "endpoint", "error", "metadata",
)  # fmt: skip
"""Parameters that say which timers match."""

SORTS = {
    "-created_at": "Newest first",
    "created_at": "Oldest first",
    "execute_at": "Due first",
    "-execute_at": "Due last",
    "id": "Id, A to Z",
    "-id": "Id, Z to A",
}


_STATE = (*FILTERS, "zone", "sort", "limit")


class TimerQuery(Struct, frozen=True, kw_only=True):
    """A list of timers as its address asks for it. `namespace` is None for all that the caller may
    see, `sort` for the order that suits the filter."""

    namespace: str | None
    status: TimerStatus | None
    matching: TimerFilter
    sort: str | None
    limit: int
    cursor: Cursor | None
    columns: Sequence[str]

    @property
    def order(self) -> SearchOrder:
        return SearchOrder(self.chosen_sort.lstrip("-"))

    @property
    def descending(self) -> bool:
        return self.chosen_sort.startswith("-")

    @property
    def chosen_sort(self) -> str:
        """The order that was asked for, or the one in which an index serves the filter."""
        return self.sort or default_sort(self.matching)


def default_sort(matching: TimerFilter) -> str:
    if matching.id_prefix is not None:
        return "id"
    has_window = (matching.due_from_inclusive, matching.due_until_exclusive) != (None, None)
    return "execute_at" if has_window else "-created_at"


def timer_query(fields: Fields, now: Instant) -> TimerQuery:
    """Raises `InvalidInput` that names the parameter."""
    status, sort = fields.get("status"), fields.get("sort")
    query = TimerQuery(
        namespace=fields.get("namespace"),
        status=None if status is None else choice("status", status, STATUSES),
        matching=filter_in(fields, now),
        sort=sort if sort is None else choice("sort", sort, {each: each for each in SORTS}),
        limit=number(
            "limit", fields.get("limit"), DEFAULT_PAGE_TIMERS, PAGE_SIZES[0], PAGE_SIZES[-1]
        ),
        cursor=None,
        columns=_columns(fields.all("column")),
    )
    cursor = fields.get("cursor")
    return query if cursor is None else replace(query, cursor=parse_cursor(cursor, query.order))


def state_in(fields: Fields) -> Fields:
    """The parameters that other addresses of the list keep, each of them once: pages have dozens of
    such addresses."""
    chosen = set(fields.all("column"))
    given = [(name, value) for name in _STATE if (value := fields.text(name)).strip()]
    return Fields([*given, *(("column", name) for name in COLUMNS if name in chosen)])


def fields_of_filter(query: TimerQuery) -> list[tuple[str, str]]:
    """The parameters of the filter with instants that no longer depend on now, for an operation on
    everything that matches."""
    status = None if query.status is None else query.status.label
    named = (("namespace", query.namespace), ("status", status))
    given = [(name, value) for name, value in named if value is not None]
    return [*given, *filter_fields(query.matching)]


def _columns(given: Sequence[str]) -> Sequence[str]:
    for name in given:
        if name not in COLUMNS:
            raise InvalidInput("column", f"must be one of {', '.join(COLUMNS)}")
    return [name for name in COLUMNS if name in given] or DEFAULT_COLUMNS
