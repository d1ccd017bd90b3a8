"""Clients of a server with limits that a test can reach."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec

from duetime.server.connection_limits import LOOKS_PER_LIMIT, ConnectionLimits
from tests.integration.server.loopback_server import LoopbackServer, loopback_server
from tests.polling import PATIENCE_SECONDS, poll
from tests.unit.api.asgi_client import API_KEY, ApiBench, create_body

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
IMPORT = (
    b"POST /api/v1/timers/import HTTP/1.1\r\nHost: test\r\nX-API-Key: %b\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" % API_KEY.encode()
)
_CREATE_HEAD = (
    b"POST /timers HTTP/1.1\r\nHost: test\r\nX-API-Key: %b\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)
CREATE = _CREATE_HEAD % (API_KEY.encode(), 500)
"""The head of a create whose body does not follow."""
_BODY = msgspec.json.encode(create_body())
WHOLE_CREATE = _CREATE_HEAD % (API_KEY.encode(), len(_BODY)) + _BODY
BAD_CREATE = _CREATE_HEAD % (API_KEY.encode(), 2) + b"{}"
LINES = b"400\r\n%b\r\n" % (b"\n" * 1_024)
"""A piece of an import, of empty lines."""

LONG_SECONDS = 3_600.0
"""A limit that no test reaches."""


def limits(
    *,
    places: int = 100,
    head: float = LONG_SECONDS,
    rest: float = LONG_SECONDS,
    body: float = LONG_SECONDS,
    answer: float = LONG_SECONDS,
    idle: float = LONG_SECONDS,
    look: float = LONG_SECONDS,
) -> ConnectionLimits:
    """`look` is the time between two looks at a connection, if no other limit is shorter."""
    return ConnectionLimits(
        max_connections=places,
        max_surplus=max(1, places // 8),
        head_seconds=head,
        rest_seconds=rest,
        body_pause_seconds=body,
        body_seconds_when_short=look * LOOKS_PER_LIMIT,
        answer_pause_seconds=answer,
        idle_seconds=idle,
    )


class Clients:
    """Clients of one server, whose connections end with the test."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, host: str | None = None) -> Streams:
        """`host` is the address of the client."""
        reader, writer = await self.server.connect(host)
        self._writers.append(writer)
        return reader, writer

    async def connections(self) -> int:
        return self.server.connections

    async def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()
        await poll(self.connections, lambda found: found == 0)


@asynccontextmanager
async def serving(limits: ConnectionLimits) -> AsyncIterator[Clients]:
    async with loopback_server(ApiBench(), limits) as server:
        clients = Clients(server)
        try:
            yield clients
        finally:
            await clients.close()


async def received(reader: asyncio.StreamReader) -> bytes:
    """Everything until the server ends the connection."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with suppress(ConnectionError):
            return await reader.read()
    return b""


async def ask(streams: Streams, request: bytes = HEALTH) -> bytes:
    """The status line of the answer; the rest of the answer is read too."""
    reader, writer = streams
    writer.write(request)
    async with asyncio.timeout(PATIENCE_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return head.split(b"\r\n", 1)[0]


async def is_ended(streams: Streams) -> bool:
    return streams[0].at_eof() or streams[0].exception() is not None


async def wait_for_connections(clients: Clients, count: int) -> None:
    await poll(clients.connections, lambda found: found == count)


async def wait_for_place(
    clients: Clients, before_each_try: Callable[[], None] = lambda: None
) -> None:
    """Connect again and again, until a newcomer is served."""

    async def newcomer() -> bytes:
        before_each_try()
        streams = await clients.connect()
        try:
            return await ask(streams)
        except (ConnectionError, asyncio.IncompleteReadError):
            return b""
        finally:
            streams[1].close()

    await poll(newcomer, lambda line: line == b"HTTP/1.1 200 OK")
