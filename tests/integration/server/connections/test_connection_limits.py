"""Clients that keep the server waiting, and more of them than there are places."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from duetime.server.connection_limits import ConnectionLimits
from tests.integration.server.loopback_server import LoopbackServer, loopback_server
from tests.polling import PATIENCE_SECONDS, poll
from tests.unit.api.asgi_client import API_KEY, ApiBench

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
IMPORT = (
    b"POST /api/v1/timers/import HTTP/1.1\r\nHost: test\r\nX-API-Key: %b\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" % API_KEY.encode()
)
CREATE = (
    b"POST /timers HTTP/1.1\r\nHost: test\r\nX-API-Key: %b\r\nContent-Type: application/json\r\n"
    b"Content-Length: 500\r\n\r\n" % API_KEY.encode()
)
LONG_SECONDS = 3_600.0
"""A limit that no test reaches."""


def limits(
    *,
    places: int = 100,
    head: float = LONG_SECONDS,
    body: float = LONG_SECONDS,
    answer: float = LONG_SECONDS,
) -> ConnectionLimits:
    return ConnectionLimits(
        max_connections=places,
        head_seconds=head,
        body_pause_seconds=body,
        body_seconds_when_short=LONG_SECONDS,
        answer_pause_seconds=answer,
    )


class Clients:
    """Clients of one server, whose connections end with the test."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> Streams:
        reader, writer = await self.server.connect()
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


async def test_a_connection_that_sends_nothing_is_closed_without_a_word() -> None:
    async with serving(limits(head=0.1)) as clients:
        reader, _ = await clients.connect()
        assert await received(reader) == b""


@pytest.mark.parametrize("before", [b"", HEALTH], ids=["first", "second"])
async def test_a_slow_head_is_answered_with_408_however_its_bytes_come(before: bytes) -> None:
    async with serving(limits(head=0.2)) as clients:
        reader, writer = await clients.connect()
        if before:
            assert await ask((reader, writer), before) == b"HTTP/1.1 200 OK"
        writer.write(b"GET /api/v1/timers HTTP/1.1\r\n")
        answer = asyncio.create_task(received(reader))

        async def drip() -> bool:
            writer.write(b"x: y\r\n")
            return answer.done()

        await poll(drip, bool)
        head, _, body = answer.result().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"connection: close" in head
        assert b"the head of the request did not arrive within 0.2 s" in body
        assert b"INVALID_INPUT" in body


@pytest.mark.parametrize("request_head", [IMPORT, CREATE], ids=["import", "create"])
async def test_a_body_that_stops_is_answered_with_408(request_head: bytes) -> None:
    async with serving(limits(body=0.2)) as clients:
        reader, writer = await clients.connect()
        writer.write(request_head)
        answer = await received(reader)
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"no part of the request's body arrived for 0.2 s" in answer
        await wait_for_connections(clients, 0)


async def test_a_body_that_goes_on_may_take_longer_than_any_limit() -> None:
    async with serving(limits(head=0.4, body=0.4)) as clients:
        reader, writer = await clients.connect()
        writer.write(IMPORT)
        loop = asyncio.get_running_loop()
        until = loop.time() + 1.5

        async def drip() -> float:
            writer.write(b"1\r\n\n\r\n")
            return loop.time()

        await poll(drip, lambda now: now >= until)
        assert await ask((reader, writer), b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_an_idle_connection_is_not_limited_by_the_time_for_a_head() -> None:
    async with serving(limits(head=0.1)) as clients:
        streams, silent = await clients.connect(), await clients.connect()
        assert await ask(streams) == b"HTTP/1.1 200 OK"
        assert await received(silent[0]) == b""
        assert await ask(streams) == b"HTTP/1.1 200 OK"


async def test_a_client_that_does_not_read_its_answers_is_dropped() -> None:
    async with serving(limits(answer=0.2)) as clients:
        _, writer = await clients.connect()
        transport: Any = writer.transport
        transport.pause_reading()
        document = b"GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n"
        writer.write(document * 2_000)
        await wait_for_connections(clients, 1)
        await wait_for_connections(clients, 0)


async def test_silent_connections_make_room_for_new_ones_and_others_live_on() -> None:
    async with serving(limits(places=4)) as clients:
        used = await clients.connect()
        assert await ask(used) == b"HTTP/1.1 200 OK"
        silent = [await clients.connect() for _ in range(3)]
        await wait_for_connections(clients, 4)
        for _ in range(8):
            newcomer = await clients.connect()
            assert await ask(newcomer) == b"HTTP/1.1 200 OK"
            newcomer[1].close()
            await wait_for_connections(clients, 4 - sum([await is_ended(each) for each in silent]))
        assert await ask(used) == b"HTTP/1.1 200 OK"


async def test_connections_in_use_leave_no_place_and_others_are_told_to_come_back() -> None:
    async with serving(limits(places=2)) as clients:
        used = [await clients.connect() for _ in range(2)]
        for streams in used:
            streams[1].write(IMPORT)
        await wait_for_connections(clients, 2)
        for path, code in ((b"/api/v1/timers", b"SERVICE_UNAVAILABLE"), (b"/timers", b'"code":1')):
            reader, writer = await clients.connect()
            writer.write(b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n" % path)
            answer = await received(reader)
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert b"\r\nretry-after: " in answer
            assert code in answer
        reader, writer = await clients.connect()
        writer.write(b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n")
        assert (await received(reader)).startswith(b"HTTP/1.1 200 OK\r\n")
        for streams in used:
            assert await ask(streams, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_connection_unused_for_a_while_makes_room_before_one_in_use() -> None:
    async with serving(limits(places=2)) as clients:
        idle, used = await clients.connect(), await clients.connect()
        assert await ask(idle) == b"HTTP/1.1 200 OK"
        used[1].write(IMPORT)
        await wait_for_connections(clients, 2)

        async def newcomer() -> bytes:
            streams = await clients.connect()
            try:
                return await ask(streams)
            except (ConnectionError, asyncio.IncompleteReadError):
                return b""
            finally:
                streams[1].close()

        assert await poll(newcomer, lambda line: line != b"HTTP/1.1 503 Service Unavailable")
        assert await received(idle[0]) == b""
        assert await ask(used, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_an_unfinished_head_keeps_no_place() -> None:
    async with serving(limits(places=2, head=LONG_SECONDS, answer=0.1)) as clients:
        used, slow = await clients.connect(), await clients.connect()
        assert await ask(slow) == b"HTTP/1.1 200 OK"
        slow[1].write(b"GET ")
        used[1].write(IMPORT)
        await wait_for_connections(clients, 2)

        async def newcomer() -> bytes:
            streams = await clients.connect()
            try:
                return await ask(streams)
            except (ConnectionError, asyncio.IncompleteReadError):
                return b""
            finally:
                streams[1].close()

        assert await poll(newcomer, lambda line: line == b"HTTP/1.1 200 OK")
        assert await received(slow[0]) == b""
        assert await ask(used, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_surplus_client_that_is_still_sending_sees_the_answer() -> None:
    async with serving(limits(places=1)) as clients:
        used = await clients.connect()
        used[1].write(IMPORT)
        await wait_for_connections(clients, 1)
        for target in (b"/timers", b"//[", b"/\xff"):
            reader, writer = await clients.connect()
            writer.write(
                b"POST %b HTTP/1.1\r\nHost: test\r\nContent-Length: 600000\r\n\r\n" % target
            )
            for _ in range(6):
                writer.write(b"x" * 100_000)
                await writer.drain()
            answer = await received(reader)
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            writer.close()


async def test_surplus_connections_that_send_nothing_are_dropped() -> None:
    async with serving(limits(places=8)) as clients:
        used = [await clients.connect() for _ in range(8)]
        for streams in used:
            streams[1].write(IMPORT)
        await wait_for_connections(clients, 8)
        surplus = [await clients.connect() for _ in range(5)]
        for streams in surplus:
            assert await received(streams[0]) == b""
        assert clients.server.connections == 8
