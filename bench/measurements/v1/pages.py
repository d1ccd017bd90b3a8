"""Latency of first, middle and last pages of very long lists.

The same pages are read in a namespace with few timers for comparison.
"""

import random
from enum import StrEnum
from itertools import product

import msgspec

from bench.harness.create_bodies import V1Form
from bench.harness.load_generator import generate
from bench.harness.percentiles import Percentiles
from bench.harness.server import Server
from bench.limits.inserts import CALLBACK_URL
from bench.measurements.v1.batches import batch_load, random_instants
from bench.measurements.v1.listing import (
    PAGE,
    PageSeen,
    Query,
    cursor_for,
    read_page,
    time_pages,
)
from bench.scale import V1Scale
from duetime.domain.instants import Instant, format_instant
from duetime.domain.namespace import DEFAULT_NAMESPACE

SMALL_NAMESPACE = "small"
NAMESPACES = (DEFAULT_NAMESPACE, SMALL_NAMESPACE)
SMALL_TIMERS = 1_000
OTHER_ORDER = {"asc": "desc", "desc": "asc"}


class Place(StrEnum):
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


class PageFigures(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    filter: str
    order: str
    place: Place
    latency: Percentiles


class PagesFigures(msgspec.Struct, frozen=True, kw_only=True):
    stored: int
    pages: list[PageFigures]
    faults: list[str]


class PageReader:
    """One list: a namespace, a filter and an order.

    Every request reads the same first and the same last page, but a different middle page, which
    is in no cache.
    """

    def __init__(self, server: Server, query: Query, requests: int) -> None:
        self._server = server
        self._query = {**query, "limit": PAGE}
        self._requests = requests
        self.faults: list[str] = []

    def measure(self, place: Place) -> Percentiles:
        queries = self._queries_at(place)
        self._check(read_page(self._server, queries[0]), place)
        return time_pages(self._server, queries)

    def _queries_at(self, place: Place) -> list[Query]:
        match place:
            case Place.FIRST:
                return [self._query] * self._requests
            case Place.MIDDLE:
                earliest, latest = sorted((self._end("asc"), self._end("desc")))
                span = latest - earliest
                return [
                    self._query_from(Instant(earliest + round(span * random.uniform(0.1, 0.7))))
                    for _ in range(self._requests)
                ]
            case Place.LAST:
                # In the opposite order, the last page follows a timer of the first page.
                backwards = {**self._query, "order": OTHER_ORDER[str(self._query["order"])]}
                return [self._query_after_page({**backwards, "limit": PAGE + 1})] * self._requests

    def _end(self, order: str) -> Instant:
        """The instant of the first timer in that order."""
        page = read_page(self._server, {**self._query, "order": order, "limit": 1})
        return page.timers[0].execute_us

    def _query_from(self, instant: Instant) -> Query:
        """The page after the first timer of the list beyond the instant."""
        bound = "dueAfter" if self._query["order"] == "asc" else "dueBefore"
        return self._query_after_page({**self._query, bound: format_instant(instant), "limit": 1})

    def _query_after_page(self, other: Query) -> Query:
        """The page after the last timer on the first page of the `other` list.

        The first page, if the other list has only one."""
        cursor = read_page(self._server, other).next_cursor
        if cursor is None:
            return self._query
        return {**self._query, "cursor": cursor_for(self._query, other, cursor)}

    def _check(self, page: PageSeen, place: Place) -> None:
        instants = [timer.execute_us for timer in page.timers]
        in_order = sorted(instants, reverse=self._query["order"] == "desc")
        what = f"pages: {place} page of {dict(self._query)}"
        if instants != in_order:
            self.faults.append(f"{what} is not in order")
        if len(instants) != PAGE and place is not Place.MIDDLE:
            self.faults.append(f"{what} has {len(instants)} timers")
        if place is Place.LAST and page.next_cursor is not None:
            self.faults.append(f"{what} is followed by another")


def measure_pages(server: Server, scale: V1Scale) -> PagesFigures:
    """On a store with `paged` pending and as many finished timers in the default namespace."""
    faults = fill_small_namespace(server)
    pages = []
    for namespace in NAMESPACES:
        for (name, query), order in product(filters_of(server, namespace).items(), OTHER_ORDER):
            base: Query = {"namespace": namespace, "order": order, **query}
            reader = PageReader(server, base, scale.page_requests)
            pages += [
                PageFigures(
                    namespace=namespace,
                    filter=name,
                    order=order,
                    place=place,
                    latency=reader.measure(place),
                )
                for place in Place
            ]
            faults += reader.faults
    return PagesFigures(stored=scale.paged, pages=pages, faults=faults)


def fill_small_namespace(server: Server) -> list[str]:
    form = V1Form(namespace=SMALL_NAMESPACE)
    load = batch_load(server, CALLBACK_URL, SMALL_TIMERS, random_instants(), form=form)
    created = generate(load)
    if created.accepted == SMALL_TIMERS:
        return []
    return [f"pages: {created.accepted} of {SMALL_TIMERS} created ({created.refusal})"]


def filters_of(server: Server, namespace: str) -> dict[str, Query]:
    """Pending timers and all timers, each with and without a range of due instants.

    The range is the second quarter of the list."""
    filters: dict[str, Query] = {}
    queries: dict[str, Query] = {"pending": {"status": "pending"}, "any status": {}}
    for name, query in queries.items():
        ends: Query = {"namespace": namespace, "limit": 1, **query}
        first, last = (
            read_page(server, {**ends, "order": order}).timers[0].execute_us
            for order in OTHER_ORDER
        )
        filters[name] = query
        filters[f"{name}, in a range"] = {
            **query,
            "dueAfter": format_instant(Instant(first + (last - first) // 4)),
            "dueBefore": format_instant(Instant((first + last) // 2)),
        }
    return filters
