"""The endpoint of the callbacks: answers at once and records when each POST arrived.

Requests are only framed, stamped and kept while they arrive. They are parsed after the measurement.
"""

import asyncio
import gc
import sys
import time
from array import array
from typing import Self, cast

import msgspec
import uvloop

from bench.harness.callback_answers import AnswerTo, Manner, answer_in
from bench.harness.child import Child, answer_parent

HEAD_END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"


class Serve(msgspec.Struct, frozen=True):
    """The parent's first message."""

    manner: Manner


class Listening(msgspec.Struct, frozen=True):
    port: int


class Await(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer when `count` callbacks have arrived since the last `Take`, or at the timeout."""

    count: int
    timeout_seconds: float


class Take(msgspec.Struct, frozen=True, tag=True):
    """Forget the callbacks that arrived; with `read`, return them first."""

    read: bool = True


class Arrivals(msgspec.Struct, frozen=True):
    count: int


class Callback(msgspec.Struct, frozen=True, array_like=True):
    """`number` and `due_us` come from the payload; `attempt` is 0 without its header."""

    number: int
    due_us: int
    arrived_us: int
    attempt: int
    webhook_id: str

    @property
    def lateness_ms(self) -> float:
        return (self.arrived_us - self.due_us) / 1_000


class Taken(msgspec.Struct, frozen=True):
    callbacks: list[Callback]


class Payload(msgspec.Struct, frozen=True):
    n: int
    due_us: int


class Body(msgspec.Struct, frozen=True):
    """The payload itself, or the v1 API's body around it."""

    n: int = 0
    due_us: int = 0
    payload: Payload | None = None


class Inbox:
    """Raw requests, each with its wall-clock instant of arrival."""

    def __init__(self) -> None:
        self.arrived_ns = array("q")
        self.requests: list[bytes] = []
        self._goal: asyncio.Event = asyncio.Event()
        self._goal_count = sys.maxsize

    def check_goal(self) -> None:
        if len(self.requests) >= self._goal_count:
            self._goal.set()

    async def reach(self, count: int, timeout_seconds: float) -> int:
        self._goal.clear()
        self._goal_count = count
        self.check_goal()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._goal.wait()
        except TimeoutError:
            # The parent compares the count.
            self._goal.clear()
        self._goal_count = sys.maxsize
        return len(self.requests)

    def take(self, read: bool) -> list[Callback]:
        arrived_ns, requests = self.arrived_ns, self.requests
        self.arrived_ns, self.requests = array("q"), []
        gc.collect()
        if not read:
            return []
        return [callback_of(*pair) for pair in zip(requests, arrived_ns, strict=True)]


def callback_of(request: bytes, arrived_ns: int) -> Callback:
    head, _, body = request.partition(HEAD_END)
    read = msgspec.json.decode(body, type=Body)
    payload = read.payload or read
    fields: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    return Callback(
        number=payload.n,
        due_us=payload.due_us,
        # Rounded down: a callback less than a microsecond early counts as early.
        arrived_us=arrived_ns // 1_000,
        attempt=int(fields.get(b"timer-attempt", b"0")),
        webhook_id=fields.get(b"webhook-id", b"").decode(),
    )


class Connection(asyncio.Protocol):
    def __init__(self, inbox: Inbox, answer_to: AnswerTo) -> None:
        self._inbox = inbox
        self._answer_to = answer_to
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        now_ns = time.time_ns()
        if self._unread:
            data = self._unread + data
        inbox = self._inbox
        start = 0
        answers = []
        while (head_end := data.find(HEAD_END, start)) >= 0:
            end = head_end + 4 + content_length(data[start:head_end])
            if len(data) < end:
                break
            inbox.arrived_ns.append(now_ns)
            request = data[start:end]
            inbox.requests.append(request)
            answers.append(self._answer_to(request))
            start = end
        self._unread = data[start:]
        if answers:
            self._transport.write(b"".join(answers))
            inbox.check_goal()


def content_length(head: bytes) -> int:
    head = head.lower()
    at = head.find(LENGTH)
    if at < 0:
        return 0
    line_end = head.find(b"\r", at + 2)
    return int(head[at + len(LENGTH) : line_end if line_end > 0 else len(head)])


async def serve() -> None:
    loop = asyncio.get_running_loop()
    inbox = Inbox()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    manner = msgspec.json.decode(await orders.readline(), type=Serve).manner
    answer_to = answer_in(manner)
    # Thousands of hanging endpoints are as many loopback addresses with one port.
    host = "0.0.0.0" if manner is Manner.HANG else "127.0.0.1"
    server = await loop.create_server(lambda: Connection(inbox, answer_to), host, 0, backlog=1024)
    # A garbage collection would look like a late callback, and the inbox holds no cycles.
    gc.disable()
    answer_parent(Listening(server.sockets[0].getsockname()[1]))
    while line := await orders.readline():
        match msgspec.json.decode(line, type=Await | Take):
            case Await(count=count, timeout_seconds=timeout_seconds):
                answer_parent(Arrivals(await inbox.reach(count, timeout_seconds)))
            case Take(read=read):
                answer_parent(Taken(inbox.take(read)))
    server.close()


class Receiver:
    """The parent's handle of the receiver process."""

    def __init__(self, manner: Manner = Manner.ACCEPT) -> None:
        self._child = Child("bench.harness.receiver")
        self.port = self._child.ask(Serve(manner), Listening, 15).port
        self.url = f"http://127.0.0.1:{self.port}/"
        self._next_number = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def reserve(self, count: int) -> int:
        """The first of `count` unused payload numbers."""
        first = self._next_number
        self._next_number += count
        return first

    def wait_for(self, count: int, timeout_seconds: float) -> int:
        """The number of arrivals: at least `count`, or fewer at the timeout."""
        question = Await(count=count, timeout_seconds=timeout_seconds)
        return self._child.ask(question, Arrivals, timeout_seconds + 10).count

    def take(self, timeout_seconds: float = 30.0) -> list[Callback]:
        return self._child.ask(Take(), Taken, timeout_seconds).callbacks

    def forget(self) -> None:
        self._child.ask(Take(read=False), Taken, 30)


def main() -> None:
    uvloop.run(serve())


if __name__ == "__main__":
    main()
