"""Lateness of steady timers, and the answers to another client, beside slow connections."""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import msgspec

from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.harness.slow_clients import SlowClients
from bench.measurements.firing import run_round
from bench.scale import V1Scale

PER_SECOND = 200
CONNECTIONS = 1_000
OTHER_PEER = "127.0.0.2"
CREATE_EVERY_SECONDS = 0.05
PATIENCE_SECONDS = 30.0


class SlowClientsFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Lateness and latency of creates alone, and beside one peer's `connections`, a quarter each:
    silent, with a slow head, with a slow body, and without reading answers. `opened` counts the
    connections that were opened again after the server had ended them, too."""

    count: int
    connections: int
    opened: int
    alone: Percentiles
    beside: Percentiles
    creates_alone: Percentiles
    creates_beside: Percentiles
    creates_refused: int
    faults: list[str]

    @property
    def p99_grows_by_ms(self) -> float:
        return self.beside.p99_ms - self.alone.p99_ms


def measure_slow_clients(server: Server, receiver: Receiver, scale: V1Scale) -> SlowClientsFigures:
    # Long enough for heads to reach their limit: connections are ended, and opened again.
    count = PER_SECOND * 2 * scale.busy_seconds

    def round_(what: str) -> tuple[Percentiles, list[str]]:
        figures = run_round(what, [server], receiver, count, 1_000_000 // PER_SECOND)
        return figures.lateness, figures.faults

    with creating(server) as before:
        alone, faults = round_("slow clients, alone")
    with (
        SlowClients(server.port, server.api_key, CONNECTIONS) as clients,
        creating(server) as creates,
    ):
        beside, more = round_("slow clients, beside")
        occupied = clients.count()
    faults += more
    if occupied.open < CONNECTIONS // 2:
        faults.append(f"slow clients: only {occupied.open} of {CONNECTIONS} connections were open")
    if creates.refused or before.refused:
        faults.append(f"slow clients: {creates.refused + before.refused} creates were refused")
    return SlowClientsFigures(
        count=count,
        connections=CONNECTIONS,
        opened=occupied.opened,
        alone=alone,
        beside=beside,
        creates_alone=percentiles_of(before.latencies_ms),
        creates_beside=percentiles_of(creates.latencies_ms),
        creates_refused=creates.refused,
        faults=faults,
    )


class Creates:
    """Creates of another peer. Each has a new connection, because the slow ones may keep a newcomer
    out."""

    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.refused = 0


@contextmanager
def creating(server: Server) -> Iterator[Creates]:
    done, creates = Event(), Creates()
    with ThreadPoolExecutor(1) as pool:
        client = pool.submit(create_until, done, server, creates)
        try:
            yield creates
        finally:
            done.set()
        client.result()


def create_until(done: Event, server: Server, creates: Creates) -> None:
    callback = {"type": "http", "url": "http://127.0.0.1:9/"}
    body = json.dumps({"execute_at": "2100-01-01T00:00:00Z", "callback": callback})
    headers = {"X-API-Key": server.api_key, "Content-Type": "application/json"}
    while not done.wait(CREATE_EVERY_SECONDS):
        started = time.perf_counter()
        connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, PATIENCE_SECONDS, source_address=(OTHER_PEER, 0)
        )
        try:
            connection.request("POST", "/timers", body, headers)
            creates.refused += connection.getresponse().status != 201
        except (OSError, http.client.HTTPException):
            creates.refused += 1
        finally:
            connection.close()
        creates.latencies_ms.append((time.perf_counter() - started) * 1_000)
