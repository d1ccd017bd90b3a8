"""What is left to do when a load is over: work that was put off, and how lists are meanwhile."""

import time

import msgspec

from bench.harness.server import Server
from bench.harness.spread import Spread, spread_of
from bench.measurements.v1.listing import PAGE, Query, path_of

WINDOW_SECONDS = 1.0
IDLE_SHARE = 0.05
"""Of one processor: a server that takes less has nothing to do, and one that works off at leisure
what it has put off takes more."""
MOST_SECONDS = 60.0
PAGES = 20


class Aftermath(msgspec.Struct, frozen=True, kw_only=True):
    """`first_list_ms` is what the very first list after the load took, `first_page` what the same
    page took after that. `busy_seconds` is how long the server had something to do then, if not
    longer than anybody looked."""

    first_list_ms: float
    first_page: Spread
    busy_seconds: float


def measure_aftermath(server: Server) -> Aftermath:
    query: Query = {"status": "pending", "limit": PAGE}
    first_list_ms = time_pages(server, [query]).max_ms
    first_page = time_pages(server, [query] * PAGES)
    return Aftermath(
        first_list_ms=first_list_ms,
        first_page=first_page,
        busy_seconds=round(wait_until_idle(server), 2),
    )


def wait_until_idle(server: Server) -> float:
    """How many seconds that took."""
    started = time.monotonic()
    while (waited := time.monotonic() - started) < MOST_SECONDS:
        before = server.cpu_seconds()
        time.sleep(WINDOW_SECONDS)
        if server.cpu_seconds() - before < IDLE_SHARE * WINDOW_SECONDS:
            return waited
    return waited


def time_pages(server: Server, queries: list[Query]) -> Spread:
    """One after the other, as a single client sees it."""
    durations_ms = []
    for query in queries:
        path = path_of(query)
        started = time.perf_counter()
        server.read(path)
        durations_ms.append((time.perf_counter() - started) * 1_000)
    return spread_of(durations_ms)
