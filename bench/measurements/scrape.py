"""The cost of a scrape with many namespaces, beside a bare answer of the same size."""

import http.client
import time
from collections.abc import Mapping
from statistics import median

import msgspec

from bench.harness.receiver import Receiver
from bench.harness.server import Server, ServerCpu, ServerFailed
from bench.limits.echo import Echo
from duetime.clock import SystemClock
from duetime.domain.instants import format_instant, plus_ms

NAMESPACES = tuple(f"scrape-{number}" for number in range(400))
"""As many series as 200 namespaces with callbacks of two types have."""

SCRAPES = 50
POLL_SECONDS = 0.1
WAIT_SECONDS = 60.0


class ScrapeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one scrape over a kept connection: medians, and the longest. `bare_ms` is a bare
    answer of the same size."""

    namespaces: int
    lines: int
    size_bytes: int
    compressed_bytes: int
    plain_ms: float
    compressed_ms: float
    longest_ms: float
    cpu_ms: float
    bare_ms: float


def measure_scrape(server: Server, receiver: Receiver) -> ScrapeFigures:
    """The server has the namespaces."""
    _fire_in_all(server, receiver)
    key = {"X-API-Key": server.api_key}
    compressed = key | {"Accept-Encoding": "gzip"}
    cpu = ServerCpu(server)
    plain = _get(server.port, "/metrics", key, SCRAPES)
    cpu_ms = cpu.us_per_timer(SCRAPES) / 1_000
    small = _get(server.port, "/metrics", compressed, SCRAPES)
    text = plain[-1][1]
    with Echo() as echo:
        bare = _get(echo.port, f"/{len(text)}", {}, SCRAPES)
    return ScrapeFigures(
        namespaces=len(NAMESPACES),
        lines=text.count(b"\n"),
        size_bytes=len(text),
        compressed_bytes=len(small[-1][1]),
        plain_ms=round(median(ms for ms, _ in plain), 2),
        compressed_ms=round(median(ms for ms, _ in small), 2),
        longest_ms=round(max(ms for ms, _ in (*plain, *small)), 1),
        cpu_ms=round(cpu_ms, 2),
        bare_ms=round(median(ms for ms, _ in bare), 2),
    )


def _fire_in_all(server: Server, receiver: Receiver) -> None:
    """Fire one timer in each namespace, so that all of its series exist."""
    due = format_instant(plus_ms(SystemClock().now(), 1_000))
    timers = [
        {"namespace": name, "id": "1", "executeAt": due, "callbackUrl": receiver.url}
        for name in NAMESPACES
    ]
    server.send("POST", "/api/v1/timers/batch", {"timers": timers})
    deadline = time.monotonic() + WAIT_SECONDS
    while _namespaces_with_lateness(server.read("/metrics")) < len(NAMESPACES):
        if time.monotonic() > deadline:
            raise ServerFailed(f"not all timers fired within {WAIT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    receiver.forget()


def _namespaces_with_lateness(text: bytes) -> int:
    return text.count(b'\nduetime_lateness_seconds_count{namespace="scrape-')


def _get(port: int, path: str, headers: Mapping[str, str], times: int) -> list[tuple[float, bytes]]:
    """Milliseconds and content of each answer, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30.0)
    answers = []
    try:
        for _ in range(times):
            started = time.perf_counter()
            connection.request("GET", path, headers=dict(headers))
            answer = connection.getresponse()
            content = answer.read()
            answers.append((1_000 * (time.perf_counter() - started), content))
            if answer.status not in (200, 201):
                raise ServerFailed(f"GET {path} answered {answer.status}")
    finally:
        connection.close()
    return answers
