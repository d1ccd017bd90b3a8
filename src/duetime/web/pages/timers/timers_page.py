"""`/ui/timers`: timers that match a filter, page by page."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from duetime.api.http.answers import StreamedAnswer
from duetime.domain.bulk import status_to_change
from duetime.domain.errors import InvalidInput
from duetime.domain.timer import TimerStatus
from duetime.ports.searching import CappedCount
from duetime.service.namespaces import Namespaces
from duetime.service.searching.checking import PAGE_SIZES, check_search
from duetime.service.searching.cursors import cursor_text
from duetime.service.searching.search import Cursor, FoundPage, Search, SearchOrder
from duetime.service.searching.searching import Searching
from duetime.service.turns import Turns
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.pages.operations.wording import WORDS, ActionWords
from duetime.web.pages.timers.columns import COLUMNS, DEFAULT_COLUMNS, SORTED_BY, row_of
from duetime.web.pages.timers.export import Exports
from duetime.web.pages.timers.parameters import (
    FILTERS,
    SORTS,
    TimerQuery,
    default_sort,
    fields_of_filter,
    state_in,
    timer_query,
)
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Fields, Request

MAX_NAMES = 200
"""Namespaces that the form offers. Others can be typed."""

MAX_CHOICES = 50
"""Namespaces to choose from. More are typed, with the names as suggestions."""

_STATUS_TABS = [(status.label.capitalize(), status.label) for status in TimerStatus]

_CHIPS = {
    "namespace": "Namespace",
    "status": "Status",
    "due_from": "Due from",
    "due_until": "Due before",
    "id_prefix": "Id begins with",
    "endpoint": "Endpoint",
    "error": "Error contains",
    "metadata": "Metadata",
}

_WINDOWS: Mapping[str, Mapping[str, str | None]] = {
    "Any time": {"due_from": None, "due_until": None},
    "Overdue": {"status": TimerStatus.PENDING.label, "due_from": None, "due_until": "now"},
    "Next hour": {"due_from": "now", "due_until": "now+1h"},
    "Next 24 hours": {"due_from": "now", "due_until": "now+24h"},
    "Next 7 days": {"due_from": "now", "due_until": "now+7d"},
    "Last hour": {"due_from": "now-1h", "due_until": "now"},
    "Last 24 hours": {"due_from": "now-24h", "due_until": "now"},
}
"""Quick filters, each with what it sets."""


class Chip(Struct, frozen=True):
    """A filter that is on, and the address without it."""

    label: str
    value: str
    without: str


class TimersPage:
    """The whole state of the list is its address. The names of namespaces are those that the
    caller may see."""

    def __init__(
        self, searching: Searching, exports: Exports, namespaces: Namespaces, turns: Turns
    ) -> None:
        self._turns = turns
        self._searching = searching
        self._exports = exports
        self._namespaces = namespaces

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiTimers", "/ui/timers", self.show, may_be_live=True),
            page("uiExportTimers", "/ui/timers/export", self.export),
            page("uiFindTimer", "/ui/timers/find", self.find),
        )

    async def show(self, request: Request) -> View:
        names = self._visible(request)
        values: dict[str, object] = {
            **_form_values(state_in(request.query), names),
            "error": None,
            "needs_namespace": False,
        }
        try:
            query = timer_query(request.query, request.now)
            search = await self._search(query, request, names)
            found, count = await asyncio.gather(
                self._searching.page(search), self._searching.count(search)
            )
        except InvalidInput as error:
            is_first_visit = error.field == "namespace" and not request.query.has("namespace")
            values |= {"error": error, "needs_namespace": is_first_visit}
            return View(
                template="pages/timers/list.html",
                title="Timers",
                values=values,
                status=200 if is_first_visit else 400,
            )
        values |= _list_values(request, query, search, found, count)
        values["rows"] = await self._turns.map(row_of, found.listed)
        return View(
            template="pages/timers/list.html",
            title="Timers",
            values=values,
            # A search that looks at thousands of timers is not repeated every second.
            live=("list",) if search.is_indexed else (),
        )

    async def find(self, request: Request) -> Redirect:
        """Lead to the timer with this id, or to the list of those whose ids begin with it."""
        query = timer_query(request.query, request.now)
        id = query.matching.id_prefix
        try:
            search = await self._search(query, request, self._visible(request))
            # In the order of ids, one that is no longer than the prefix comes first.
            found = None if id is None else await self._searching.page(search)
        except InvalidInput:
            found = None
        named = [] if found is None else [row_of(each) for each in found.listed]
        exact = [row.path for row in named if row.id == id]
        return Redirect(exact[0] if len(exact) == 1 else _address(state_in(request.query)))

    async def export(self, request: Request) -> StreamedAnswer:
        query = timer_query(request.query, request.now)
        search = await self._search(query, request, self._visible(request))
        check_search(search)
        return self._exports.answer(
            request.query.get("format"), search, request.caller, request.now
        )

    async def _search(self, query: TimerQuery, request: Request, names: Sequence[str]) -> Search:
        """Raises `NamespaceNotFound`."""
        chosen = tuple(names)
        if query.namespace is not None:
            request.caller.reach(query.namespace)
            await self._namespaces.named(query.namespace)
            chosen = (query.namespace,)
        return Search(
            namespaces=chosen,
            order=query.order,
            descending=query.descending,
            status=query.status,
            matching=query.matching,
            limit=query.limit,
            cursor=query.cursor,
        )

    def _visible(self, request: Request) -> list[str]:
        """Some of the names, if there are many."""
        if request.access.namespaces is None:
            return sorted(each.name for each in islice(self._namespaces, MAX_NAMES))
        known = self._namespaces.known
        return sorted(name for name in request.access.namespaces if known(name) is not None)


def _form_values(fields: Fields, names: Sequence[str]) -> dict[str, object]:
    """Everything around the list: it stays as it is while the list changes."""
    chosen = {name: fields.text(name).strip() for name in (*FILTERS, "sort", "limit")}
    return {
        "fields": chosen,
        "names": names,
        "is_long_list": len(names) > MAX_CHOICES,
        "chips": list(_chips(fields)),
        "tabs": [
            (label, _address(fields, status=value), chosen["status"] == (value or ""))
            for label, value in (("All", None), *_STATUS_TABS)
        ],
        "windows": [
            (
                label,
                _address(fields, **window),
                all(chosen[name] == (value or "") for name, value in window.items()),
            )
            for label, window in _WINDOWS.items()
        ],
        "sorts": SORTS,
        "sizes": PAGE_SIZES,
        "all_columns": COLUMNS,
        "usual_columns": ",".join(DEFAULT_COLUMNS),
        "shown_columns": fields.all("column") or DEFAULT_COLUMNS,
        "cleared": _address(fields, **dict.fromkeys((*FILTERS, "zone"))),
        "has_filter": any(chosen[name] for name in FILTERS),
    }


def _list_values(
    request: Request,
    query: TimerQuery,
    search: Search,
    found: FoundPage,
    count: CappedCount | None,
) -> dict[str, object]:
    fields = state_in(request.query)
    stopped_at = found.stopped_at
    is_back = query.cursor is not None and query.cursor.is_before
    return {
        "columns": [
            (name, COLUMNS[name], *_sorting(name, query, fields)) for name in query.columns
        ],
        "id_sorting": _sorting("id", query, fields),
        "limit": query.limit,
        "count": count,
        "next": _page_address(fields, found.next, search),
        "previous": _page_address(fields, found.previous, search),
        "first": None if query.cursor is None else _address(fields),
        "went_on": _page_address(fields, found.previous if is_back else found.next, search),
        "looked_at": found.looked_at,
        "stopped": stopped_at is not None,
        "stopped_at": None if stopped_at is None else stopped_at[0],
        "stopped_at_id": search.order is SearchOrder.ID,
        "unreadable": found.unreadable,
        "is_indexed": search.is_indexed,
        "better_sort": _better_sort(query, search, fields),
        "sort_words": SORTS[query.chosen_sort],
        "actions": _actions(request, query),
        "filter_fields": fields_of_filter(query),
        "exports": [
            (name.upper(), f"/ui/timers/export?{_query(fields, format=name)}")
            for name in ("csv", "json", "ndjson")
        ],
    }


def _actions(request: Request, query: TimerQuery) -> Sequence[ActionWords]:
    """The actions that fit timers of the chosen status."""
    if not request.may_write:
        return ()
    return [
        words for action, words in WORDS.items() if query.status in (None, status_to_change(action))
    ]


def _chips(fields: Fields) -> Iterator[Chip]:
    for name, label in _CHIPS.items():
        value = fields.text(name).strip()
        if value:
            yield Chip(label, value, _address(fields, **{name: None}))


def _query(fields: Fields, **changes: str | None) -> str:
    """The state of the list with changes, at its first page."""
    return fields.with_changes(**changes)


def _address(fields: Fields, **changes: str | None) -> str:
    query = _query(fields, **changes)
    return f"/ui/timers?{query}" if query else "/ui/timers"


def _page_address(fields: Fields, cursor: Cursor | None, search: Search) -> str | None:
    return None if cursor is None else _address(fields, cursor=cursor_text(cursor, search.order))


def _sorting(column: str, query: TimerQuery, fields: Fields) -> tuple[str | None, str | None]:
    """The address that sorts by the column, the other way round if the list is so already, and the
    direction in which it is."""
    if column not in ("id", *SORTED_BY):
        return None, None
    if query.order.value != column:
        return _address(fields, sort=f"-{column}" if column == "created_at" else column), None
    turned = column if query.descending else f"-{column}"
    return _address(fields, sort=turned), "descending" if query.descending else "ascending"


def _better_sort(query: TimerQuery, search: Search, fields: Fields) -> str | None:
    """The address of the list in the order that an index has, if there is one."""
    if search.is_indexed or query.sort is None:
        return None
    order = SearchOrder(default_sort(query.matching).lstrip("-"))
    if order is search.order or not replace(search, order=order, cursor=None).is_indexed:
        return None
    return _address(fields, sort=None)
