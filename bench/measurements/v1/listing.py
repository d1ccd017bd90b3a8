"""Lists of the Timer API v1, read page by page."""

import time
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.server import Server
from duetime.api.v1.listing import cursor_of, parse_listing
from duetime.domain.instants import Instant, parse_instant
from duetime.ports.store import ScanQuery

PAGE = 200
FIRST_PAGES = 20
LARGEST_PAGE = 1_000

Query = Mapping[str, str | int]


class AttemptSeen(msgspec.Struct, frozen=True, rename="camel"):
    number: int
    due_at: str
    sent_at: str | None
    answered_at: str | None
    error: str | None


class TimerSeen(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    status: str
    execute_at: str
    attempts: list[AttemptSeen]

    @property
    def execute_us(self) -> Instant:
        return parse_instant(self.execute_at)


class PageSeen(msgspec.Struct, frozen=True, rename="camel"):
    timers: list[TimerSeen]
    next_cursor: str | None


def path_of(query: Query) -> str:
    return f"/api/v1/timers?{urlencode(query)}"


def read_page(server: Server, query: Query) -> PageSeen:
    return msgspec.json.decode(server.read(path_of(query)), type=PageSeen)


def cursor_for(query: Query, other: Query, cursor: str) -> str:
    """Translate a cursor of the `other` list into one of the list of `query`."""
    after = _parsed({**other, "cursor": cursor}).after_exclusive
    assert after is not None
    return cursor_of(after, _parsed(query))


def _parsed(query: Query) -> ScanQuery:
    return parse_listing({"query_string": urlencode(query).encode()})[0]


def read_all(server: Server, query: Query) -> Iterator[TimerSeen]:
    """Every timer of the list, in the largest pages allowed."""
    query = {**query, "limit": LARGEST_PAGE}
    page = read_page(server, query)
    yield from page.timers
    while page.next_cursor is not None:
        page = read_page(server, {**query, "cursor": page.next_cursor})
        yield from page.timers


def time_pages(server: Server, queries: Sequence[Query]) -> Percentiles:
    """Latency of pages that a single client reads one after the other."""
    durations_ms = []
    for query in queries:
        path = path_of(query)
        started = time.perf_counter()
        server.read(path)
        durations_ms.append((time.perf_counter() - started) * 1_000)
    return percentiles_of(durations_ms)


def time_first_page(server: Server) -> Percentiles:
    """Latency of the first page of pending timers, after one read that warms up."""
    query: Query = {"status": "pending", "limit": PAGE}
    read_page(server, query)
    return time_pages(server, [query] * FIRST_PAGES)
