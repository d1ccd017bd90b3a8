"""A real HTTP receiver in the test's loop that records requests and answers by script."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, cast

import httptools

from duetime.clock import SystemClock
from duetime.domain.instants import Instant
from tests.polling import PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0


class Hang:
    """Take the request and never answer."""


@dataclass(frozen=True, slots=True)
class Close:
    """Take the request and close the connection without an answer."""

    delay_seconds: float = 0.0


Reaction = Answer | Hang | Close


@dataclass(slots=True)
class Request:
    """Header names are in lower case."""

    arrived_at: Instant
    method: str = ""
    target: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class CallbackReceiver:
    """`reaction` is for every request whose target has no script of its own."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reaction: Reaction = Answer()
        self.url = ""
        self._port = 0
        self._scripts: dict[str, list[Reaction]] = defaultdict(list)
        self._transports: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None
        self._arrival = asyncio.Event()

    def script(self, target: str, *reactions: Reaction) -> None:
        """React to the target's next requests in this order; the last reaction stays."""
        self._scripts[target].extend(reactions)

    def of(self, target: str) -> list[Request]:
        return [request for request in self.requests if request.target == target]

    async def wait_for(
        self, count: int, matches: Callable[[Request], bool] = lambda request: True
    ) -> list[Request]:
        """All matching requests, once there are at least `count`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                self._arrival.clear()
                matching = [request for request in self.requests if matches(request)]
                if len(matching) >= count:
                    return matching
                await self._arrival.wait()

    async def wait_for_total(self, count: int) -> None:
        """Wait until there are `count` requests in all; quick even among thousands."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.requests) < count:
                self._arrival.clear()
                await self._arrival.wait()

    async def wait_for_targets(self, targets: set[str]) -> None:
        """Wait until each of the targets was called."""
        seen = 0
        missing = set(targets)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                self._arrival.clear()
                missing -= {request.target for request in self.requests[seen:]}
                seen = len(self.requests)
                if not missing:
                    return
                await self._arrival.wait()

    async def wait_until_read(self) -> None:
        """Wait until all requests that were sent by now have been read."""
        for _ in range(3):
            # Connections are accepted and then read in order, so this one is answered last.
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(b"GARBAGE\r\n\r\n")
            await reader.read()
            writer.close()

    async def start(self) -> None:
        """A restarted receiver keeps its port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self._port, backlog=2048
        )
        self._port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for transport in list(self._transports):
            transport.abort()
        await self._server.wait_closed()

    def _take(self, request: Request) -> Reaction:
        self.requests.append(request)
        self._arrival.set()
        script = self._scripts.get(request.target)
        if not script:
            return self.reaction
        return script.pop(0) if len(script) > 1 else script[0]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: CallbackReceiver) -> None:
        self._receiver = receiver
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._request = Request(Instant(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._receiver._transports.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._receiver._transports.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._request = Request(SystemClock().now())

    def on_url(self, url: bytes) -> None:
        self._request.target += url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.decode().lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._request.body += body

    def on_message_complete(self) -> None:
        self._request.method = self._parser.get_method().decode()
        reaction = self._receiver._take(self._request)
        match reaction:
            case Answer():
                lines = [f"HTTP/1.1 {reaction.status} Scripted"]
                lines.append(f"Content-Length: {len(reaction.body)}")
                lines.extend(f"{name}: {value}" for name, value in reaction.headers.items())
                data = "\r\n".join([*lines, "", ""]).encode() + reaction.body
                if reaction.delay_seconds:
                    loop = asyncio.get_running_loop()
                    loop.call_later(reaction.delay_seconds, self._transport.write, data)
                else:
                    self._transport.write(data)
            case Close(delay_seconds=delay_seconds):
                asyncio.get_running_loop().call_later(delay_seconds, self._transport.close)
            case Hang():
                pass
