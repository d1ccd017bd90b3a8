"""Latency of the platform API's lists, read one after the other."""

import time

import msgspec

from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.server import Server
from bench.scale import Scale

LISTS = {
    "all, newest first": "",
    "pending, next first": "status=pending&sort=execute_at&order=asc",
    "pending, newest first": "status=pending",
    "completed, newest first": "status=completed",
    "failed, last due first": "status=failed&sort=execute_at&order=desc",
}
OFFSETS = (0, 1_000)


class ListFigures(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    offset: int
    latency: Percentiles


def measure_lists(server: Server, scale: Scale) -> list[ListFigures]:
    return [
        ListFigures(
            what=what,
            offset=offset,
            latency=measure_list(server, f"{query}&offset={offset}", scale),
        )
        for what, query in LISTS.items()
        for offset in OFFSETS
    ]


def measure_list(server: Server, query: str, scale: Scale) -> Percentiles:
    durations_ms = []
    for _ in range(scale.list_requests):
        started = time.perf_counter()
        server.list_page(query)
        durations_ms.append((time.perf_counter() - started) * 1_000)
    return percentiles_of(durations_ms)
