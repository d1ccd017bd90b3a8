"""Lateness of steady timers while clients keep the API busy with large batches."""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import msgspec

from bench.harness.percentiles import Percentiles
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.measurements.firing import run_round
from bench.scale import V1Scale

TIMERS = 1_000
"""Timers in each batch."""

REPEATING_CLIENTS = 4
PER_SECOND = 200
PATIENCE_SECONDS = 60.0


class BusyApiFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Lateness alone, beside a client whose batches are invalid, and beside clients that repeat
    batches of existing timers. Rates count the batches that were answered per second."""

    count: int
    alone: Percentiles
    beside_invalid: Percentiles
    invalid_per_second: float
    beside_repeated: Percentiles
    repeated_per_second: float
    faults: list[str]


def measure_busy_api(server: Server, receiver: Receiver, scale: V1Scale) -> BusyApiFigures:
    count = PER_SECOND * scale.busy_seconds

    def round_(what: str) -> tuple[Percentiles, list[str]]:
        figures = run_round(what, [server], receiver, count, 1_000_000 // PER_SECOND)
        return figures.lateness, figures.faults

    alone, faults = round_("busy API, alone")
    with sending(server, [batch("invalid", url="ftp://wrong")]) as sent:
        beside_invalid, more = round_("busy API, invalid")
        invalid_per_second = sent()
    faults += more
    batches = [batch(f"repeated-{number}") for number in range(REPEATING_CLIENTS)]
    with sending(server, batches) as sent:
        beside_repeated, more = round_("busy API, repeated")
        repeated_per_second = sent()
    return BusyApiFigures(
        count=count,
        alone=alone,
        beside_invalid=beside_invalid,
        invalid_per_second=invalid_per_second,
        beside_repeated=beside_repeated,
        repeated_per_second=repeated_per_second,
        faults=[*faults, *more],
    )


def batch(prefix: str, url: str = "http://127.0.0.1:9/") -> bytes:
    timers = [
        {"id": f"{prefix}-{number}", "executeAt": "2100-01-01T00:00:00Z", "callbackUrl": url}
        for number in range(TIMERS)
    ]
    return json.dumps({"timers": timers}).encode()


@contextmanager
def sending(server: Server, bodies: list[bytes]) -> Iterator["Sent"]:
    """A client for each body, which sends it again and again."""
    done = Event()
    sent = Sent()
    with ThreadPoolExecutor(len(bodies)) as pool:
        clients = [pool.submit(send_until, done, server, body, sent) for body in bodies]
        try:
            yield sent
        finally:
            done.set()
        for client in clients:
            client.result()


class Sent:
    """Counts answers since it was made."""

    def __init__(self) -> None:
        self.answers = 0
        self._since = time.perf_counter()

    def __call__(self) -> float:
        return round(self.answers / (time.perf_counter() - self._since), 1)


def send_until(done: Event, server: Server, body: bytes, sent: Sent) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    headers = {"X-API-Key": server.api_key, "Content-Type": "application/json"}
    while not done.is_set():
        connection.request("POST", "/api/v1/timers/batch", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        sent.answers += 1
    connection.close()
