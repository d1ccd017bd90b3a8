"""Latency of the page of timers in the Web UI, on a store with very many timers."""

import random
import time
from collections.abc import Callable

import msgspec

from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.server import Server
from bench.measurements.v1.listing import read_page
from bench.scale import V1Scale
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, format_instant
from duetime.service.searching.cursors import cursor_text
from duetime.service.searching.search import Cursor, SearchOrder
from duetime.web.request import Fields

WINDOW_US = 3_600 * MICROSECONDS_PER_SECOND
UNINDEXED = "metadata, which no index has"

Query = Callable[[], dict[str, str]]
"""The parameters of the next request."""


class UiListFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Times of whole requests."""

    what: str
    latency: Percentiles

    @property
    def is_indexed(self) -> bool:
        return self.what != UNINDEXED


class UiTimersFigures(msgspec.Struct, frozen=True, kw_only=True):
    """On a store with `stored` pending and as many finished timers."""

    stored: int
    lists: list[UiListFigures]


class _Queries:
    """Requests that differ from each other, so that no cache has their pages."""

    def __init__(self, server: Server) -> None:
        self._draw = random.Random(1)
        ends = [
            read_page(server, {"limit": 1, "order": order}).timers[0].execute_us
            for order in ("asc", "desc")
        ]
        self._first, self._last = min(ends), max(ends)

    def lists(self) -> dict[str, Query]:
        return {
            "newest first": dict,
            "pending, newest first": lambda: {"status": "pending"},
            "completed, oldest first": lambda: {"status": "completed", "sort": "created_at"},
            "due first": lambda: {"sort": "execute_at"},
            "completed, due last": lambda: {"status": "completed", "sort": "-execute_at"},
            "anywhere by due instant, either way": self._anywhere,
            "an hour of due instants": self._window,
            "an hour of pending timers": lambda: {**self._window(), "status": "pending"},
            "an hour, 200 on a page": lambda: {**self._window(), "limit": "200"},
            "by id": lambda: {"sort": "id"},
            "ids that begin with 2 characters": lambda: {"id_prefix": self._prefix(2)},
            "ids that begin with 6 characters": lambda: {"id_prefix": self._prefix(6)},
            UNINDEXED: lambda: {"metadata": "customer=0"},
        }

    def _anywhere(self) -> dict[str, str]:
        order = SearchOrder.EXECUTE_AT
        place = (self._instant(), self._draw.randbytes(16))
        cursor = Cursor(place, is_before=self._draw.random() < 0.5)
        return {"sort": order.value, "cursor": cursor_text(cursor, order)}

    def _window(self) -> dict[str, str]:
        start = self._instant()
        end = Instant(start + WINDOW_US)
        return {"due_from": format_instant(start), "due_until": format_instant(end)}

    def _prefix(self, length: int) -> str:
        return "".join(self._draw.choices("0123456789abcdef", k=length))

    def _instant(self) -> Instant:
        return Instant(self._draw.randrange(self._first, self._last + 1))


def measure_ui_timers(server: Server, scale: V1Scale) -> UiTimersFigures:
    lists = [
        UiListFigures(what=what, latency=_latency(server, query, scale.page_requests))
        for what, query in _Queries(server).lists().items()
    ]
    return UiTimersFigures(stored=scale.paged, lists=lists)


def _latency(server: Server, query: Query, requests: int) -> Percentiles:
    # The first one reads the template.
    server.read("/ui/timers")
    durations_ms = []
    for _ in range(requests):
        path = f"/ui/timers?{Fields().with_changes(**query())}"
        started = time.perf_counter()
        server.read(path)
        durations_ms.append((time.perf_counter() - started) * 1_000)
    return percentiles_of(durations_ms)
