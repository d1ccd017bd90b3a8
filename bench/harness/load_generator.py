"""An HTTP/1.1 load generator: keep-alive connections that POST one request after the other.

It must cost far less CPU than the server. Requests are built before the clock starts. Answers are
parsed only for status, length and, in batches, the number of created timers.
"""

import asyncio
import gc
import random
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from typing import cast

import msgspec
import uvloop

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import V1Form, platform_body, v1_body
from bench.harness.percentiles import Percentiles, percentiles_of

CONNECTIONS = 64
HEAD_END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"
RESULT = b'"status":"'
CREATED = b'"status":"created"'


class RandomInstants(msgspec.Struct, frozen=True, kw_only=True, tag="random"):
    """Due instants at random milliseconds between two instants."""

    earliest_us: int
    latest_exclusive_us: int

    def due_us(self, index: int) -> int:
        return random.randrange(self.earliest_us, self.latest_exclusive_us) // 1_000 * 1_000


class EvenInstants(msgspec.Struct, frozen=True, kw_only=True, tag="even"):
    """Due instants at even steps; with a step of 0, all timers share one instant."""

    first_us: int
    step_us: int

    def due_us(self, index: int) -> int:
        return self.first_us + index * self.step_us


class Batches(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of `size` timers of the v1 API per request."""

    size: int
    form: V1Form = V1Form()


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Creates of `count` timers, one per request unless `batches` is set.

    Payloads are numbered from `first_number`. With `per_second` requests are sent at that rate, and
    built on the way. The callbacks go to as many `hosts` in turn: loopback addresses in place of
    the host of `callback_url`. Requests take turns with `other_keys`, too.
    """

    port: int
    api_key: str
    callback_url: str
    count: int
    instants: RandomInstants | EvenInstants
    batches: Batches | None = None
    first_number: int = 0
    connections: int = CONNECTIONS
    timeout_seconds: float = 60.0
    per_second: int | None = None
    hosts: int = 1
    other_keys: tuple[str, ...] = ()

    def url_of(self, index: int) -> str:
        if self.hosts == 1:
            return self.callback_url
        host = 2**16 + index % self.hosts
        address = f"127.{host >> 16}.{host >> 8 & 255}.{host & 255}"
        return self.callback_url.replace("127.0.0.1", address)


class LoadFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`statuses` counts answers; `lost` counts requests without an answer.

    `created` counts the timers that answers to batches report as created. `refusal` is the first
    answer without a 2xx, or with a timer that was not created.
    """

    sent: int
    statuses: dict[int, int]
    lost: int
    seconds: float
    per_second: float
    latency: Percentiles
    finished_at_us: int
    cpu_seconds: float
    created: int | None
    refusal: str | None

    @property
    def accepted(self) -> int:
        """Accepted timers, not requests."""
        if self.created is not None:
            return self.created
        return sum(n for status, n in self.statuses.items() if 200 <= status < 300)


def requests_of(load: Load) -> Iterator[bytes]:
    path = "/timers" if load.batches is None else "/api/v1/timers/batch"
    heads = [
        (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{load.port}\r\n"
            f"X-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: "
        ).encode()
        for key in (load.api_key, *load.other_keys)
    ]
    bodies = single_bodies(load) if load.batches is None else batch_bodies(load, load.batches)
    return (
        b"%b%d\r\n\r\n%b" % (head, len(body), body)
        for head, body in zip(cycle(heads), bodies, strict=False)
    )


def single_bodies(load: Load) -> Iterator[bytes]:
    for index in range(load.count):
        number, due_us = load.first_number + index, load.instants.due_us(index)
        yield platform_body(number, due_us, load.url_of(index))


def batch_bodies(load: Load, batches: Batches) -> Iterator[bytes]:
    for start in range(0, load.count, batches.size):
        timers = (
            v1_body(
                batches.form,
                load.first_number + index,
                load.instants.due_us(index),
                load.url_of(index),
            )
            for index in range(start, min(start + batches.size, load.count))
        )
        yield b'{"timers":[%b]}' % b",".join(timers)


class Run:
    """State shared by the connections: requests left to send, and results."""

    def __init__(self, load: Load) -> None:
        requests = requests_of(load)
        self.requests = iter(list(requests)) if load.per_second is None else requests
        self._step_ns = 0 if load.per_second is None else 1_000_000_000 // load.per_second
        self._turn_ns = time.perf_counter_ns()
        self.stop_at_ns = self._turn_ns + int(load.timeout_seconds * 1e9)
        self.latencies_ns = array("q")
        self.statuses: Counter[int] = Counter()
        self.sent = 0
        self.lost = 0
        self.created: int | None = None if load.batches is None else 0
        self.open_connections = 0
        self.refusal: str | None = None
        self.finished = asyncio.get_running_loop().create_future()

    def take_turn(self, now_ns: int) -> int:
        """Nanoseconds until the next request may be sent."""
        if not self._step_ns:
            return 0
        wait_ns = self._turn_ns - now_ns
        self._turn_ns += self._step_ns
        return max(wait_ns, 0)

    def leave(self) -> None:
        self.open_connections -= 1
        if self.open_connections == 0 and not self.finished.done():
            self.finished.set_result(None)


class Connection(asyncio.Protocol):
    """Sends the next request when the previous answer has been read."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._unread = b""
        self._sent_ns = 0
        self._waiting = False
        self._active = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def start(self) -> None:
        self._active = True
        self._send_next(time.perf_counter_ns())

    def _send_next(self, now_ns: int) -> None:
        wait_ns = self._run.take_turn(now_ns)
        if wait_ns:
            asyncio.get_running_loop().call_later(wait_ns / 1e9, self._send_now)
        else:
            self._send(now_ns)

    def _send_now(self) -> None:
        self._send(time.perf_counter_ns())

    def _send(self, now_ns: int) -> None:
        run = self._run
        request = next(run.requests, None) if now_ns < run.stop_at_ns else None
        if request is None:
            self._waiting = False
            self._transport.close()
            return
        run.sent += 1
        self._waiting = True
        self._sent_ns = now_ns
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        now_ns = time.perf_counter_ns()
        if self._unread:
            data = self._unread + data
        head_end = data.find(HEAD_END)
        if head_end < 0:
            self._unread = data
            return
        head = data[:head_end].lower()
        at = head.find(LENGTH)
        if at < 0:
            # Neither the server nor the echo sends chunks: an answer without a length is an error.
            self._run.refusal = self._run.refusal or f"no Content-Length: {head[:200]!r}"
            self._transport.close()
            return
        line_end = head.find(b"\r", at + 2)
        length = int(head[at + len(LENGTH) : line_end if line_end > 0 else head_end])
        if len(data) < head_end + 4 + length:
            self._unread = data
            return
        self._unread = b""
        status = int(head[9:12])
        run = self._run
        run.latencies_ns.append(now_ns - self._sent_ns)
        run.statuses[status] += 1
        if run.refusal is None and not 200 <= status < 300:
            run.refusal = f"HTTP {status}: {data[head_end + 4 :][:300]!r}"
        if run.created is not None:
            self._count_created(run.created, data)
        self._send_next(now_ns)

    def _count_created(self, before: int, answer: bytes) -> None:
        created = answer.count(CREATED)
        self._run.created = before + created
        if self._run.refusal is None and answer.count(RESULT) != created:
            others = answer.replace(CREATED, b"")
            self._run.refusal = f"not created: {others[others.find(RESULT) :][:300]!r}"

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting:
            self._run.lost += 1
        if self._active:
            self._run.leave()


async def apply(load: Load) -> LoadFigures:
    """Send the load, within its timeout and 5 s of grace."""
    loop = asyncio.get_running_loop()
    run = Run(load)
    connections = []
    for _ in range(min(load.connections, load.count)):
        _, connection = await loop.create_connection(
            lambda: Connection(run), "127.0.0.1", load.port
        )
        connections.append(connection)
    run.open_connections = len(connections)
    gc.collect()
    gc.freeze()
    cpu_before = time.process_time()
    started = time.perf_counter()
    for connection in connections:
        connection.start()
    await asyncio.wait([run.finished], timeout=load.timeout_seconds + 5)
    finished_at_us = time.time_ns() // 1_000
    seconds = time.perf_counter() - started
    answered = len(run.latencies_ns)
    return LoadFigures(
        sent=run.sent,
        statuses=dict(run.statuses),
        lost=run.sent - answered,
        seconds=round(seconds, 4),
        per_second=round(answered / seconds, 1),
        latency=percentiles_of([nanoseconds / 1e6 for nanoseconds in run.latencies_ns]),
        finished_at_us=finished_at_us,
        cpu_seconds=round(time.process_time() - cpu_before, 4),
        created=run.created,
        refusal=run.refusal,
    )


def generate(load: Load) -> LoadFigures:
    """Called in the parent: run the load in a child process."""
    return generate_all([load])[0]


def generate_all(loads: Sequence[Load]) -> list[LoadFigures]:
    """Run several loads at the same time, each in its own child process."""
    with ExitStack() as stack:
        children = [stack.enter_context(Child("bench.harness.load_generator")) for _ in loads]
        for child, load in zip(children, loads, strict=True):
            child.tell(load)
        return [
            child.read(LoadFigures, load.timeout_seconds + 30)
            for child, load in zip(children, loads, strict=True)
        ]


def main() -> None:
    load = msgspec.json.decode(sys.stdin.buffer.readline(), type=Load)
    answer_parent(uvloop.run(apply(load)))


if __name__ == "__main__":
    main()
