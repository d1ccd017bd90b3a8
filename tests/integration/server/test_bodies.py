"""The memory for request bodies is shared by all connections, and comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec
import pytest

from duetime.server.connection_limits import ConnectionLimits
from tests.integration.server.loopback_server import LoopbackServer, loopback_server
from tests.integration.server.pipelines import HOST, KEY
from tests.polling import PATIENCE_SECONDS, poll
from tests.unit.api.asgi_client import IN_TEN_SECONDS, ApiBench, create_body, make_api_rules

MIB = 2**20
LIMIT_BYTES = 16 * MIB
OTHER_PEER = "127.0.0.2"

BATCH = b"POST /api/v1/timers/batch HTTP/1.1\r\n%b%b" % (HOST, KEY)
IMPORT = b"POST /api/v1/timers/import HTTP/1.1\r\n%b%b" % (HOST, KEY)
CREATE = b"POST /timers HTTP/1.1\r\n%b%b" % (HOST, KEY)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def with_length(head: bytes, length: int) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % length


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        with suppress(ConnectionError):
            await self._writer.drain()

    async def answer(self) -> tuple[int, bytes, dict[str, object]]:
        """Status, head in lower case, and body."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        body = msgspec.json.decode(await self._reader.readexactly(length))
        return int(head.split()[1]), head, body

    def leave(self) -> None:
        self._writer.transport.abort()


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    api = ApiBench(api_rules=make_api_rules(max_bodies_bytes=LIMIT_BYTES))
    async with asyncio.timeout(PATIENCE_SECONDS), loopback_server(api) as server:
        yield server


@asynccontextmanager
async def client_of(server: LoopbackServer, host: str | None = None) -> AsyncIterator[Client]:
    """`host` is the address of the client."""
    client = Client(*await server.connect(host))
    try:
        yield client
    finally:
        client.leave()


async def used_bytes(server: LoopbackServer) -> int:
    return server.api.app.bodies.used_bytes


async def create_plainly(server: LoopbackServer, host: str | None = None) -> int:
    body = msgspec.json.encode(create_body())
    async with client_of(server, host) as client:
        await client.send(with_length(CREATE, len(body)) + body)
        return (await client.answer())[0]


async def wait_until_empty(server: LoopbackServer) -> None:
    await poll(lambda: used_bytes(server), until=lambda used: used == 0)


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_unfinished_bodies_are_refused_over_the_budget(
    server: LoopbackServer, framing: str
) -> None:
    sent = b"x" * MIB
    start = BATCH + CHUNKED if framing == "chunked" else with_length(BATCH, 8 * MIB)
    piece = chunk(sent) if framing == "chunked" else sent
    async with AsyncExitStack() as stack:
        for _ in range(14):
            client = await stack.enter_async_context(client_of(server))
            await client.send(start + piece)
        await poll(lambda: used_bytes(server), until=lambda used: used == 14 * MIB)
        for _ in range(10):
            client = await stack.enter_async_context(client_of(server))
            await client.send(start + piece)
            status, head, body = await client.answer()
            assert status == 503
            assert b"retry-after: 2\r\n" in head
            assert body["error"] == "SERVICE_UNAVAILABLE"
        assert await create_plainly(server) == 201
    await wait_until_empty(server)


async def test_small_bodies_have_a_reserve_and_no_peer_gets_all(
    server: LoopbackServer,
) -> None:
    large, small = b"x" * MIB, b"x" * 60_000
    async with AsyncExitStack() as stack:
        for _ in range(14):
            client = await stack.enter_async_context(client_of(server))
            await client.send(with_length(BATCH, 8 * MIB) + large)
        await poll(lambda: used_bytes(server), until=lambda used: used == 14 * MIB)
        for host, end in ((None, 15 * MIB), (OTHER_PEER, 16 * MIB)):
            assert await create_plainly(server, host) == 201
            for _ in range(MIB // len(small)):
                client = await stack.enter_async_context(client_of(server, host))
                await client.send(with_length(CREATE, len(small) + 1) + small)
            await poll(
                lambda: used_bytes(server),
                until=lambda used, end=end: used > end - len(small),  # type: ignore[misc]
            )
            async with client_of(server, host) as client:
                await client.send(with_length(CREATE, len(small)) + small)
                status, head, body = await client.answer()
            assert (status, body["code"]) == (503, 1)
            assert b"retry-after: 2\r\n" in head
    await wait_until_empty(server)
    assert await create_plainly(server) == 201


async def test_slow_bodies_make_room_when_memory_is_short() -> None:
    api = ApiBench(api_rules=make_api_rules(max_bodies_bytes=LIMIT_BYTES))
    limits = ConnectionLimits(max_connections=100, max_surplus=10, body_seconds_when_short=0.2)
    start = with_length(BATCH, 8 * MIB)
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        loopback_server(api, limits) as server,
        AsyncExitStack() as stack,
    ):
        slow = [await stack.enter_async_context(client_of(server)) for _ in range(14)]
        for client in slow:
            await client.send(start + b"x" * MIB)
        await poll(lambda: used_bytes(server), until=lambda used: used == 14 * MIB)
        async with client_of(server) as late:
            await late.send(start + b"x" * MIB)
            assert (await late.answer())[0] == 503
        answers = [asyncio.create_task(client.answer()) for client in slow]
        await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        # There is no shortage any more once half of the memory is free.
        await poll(lambda: used_bytes(server), until=lambda used: used <= LIMIT_BYTES // 2)
        done = [answer.result() for answer in answers if answer.done()]
        assert {(status, body["error"]) for status, _, body in done} == {
            (503, "SERVICE_UNAVAILABLE")
        }
        async with client_of(server) as later:
            await later.send(with_length(BATCH, 4 * MIB) + b"[" + b" " * (4 * MIB - 1))
            assert (await later.answer())[0] == 400
        for answer in answers:
            answer.cancel()


async def test_bodies_of_clients_that_leave_are_forgotten(server: LoopbackServer) -> None:
    part = b"x" * 40_000
    starts = [
        with_length(CREATE, 50_000),
        with_length(CREATE, 500_000),
        CREATE + CHUNKED + b"fffff\r\n",
        with_length(IMPORT, 500_000),
        # A request that waits behind another one.
        b"GET /healthz HTTP/1.1\r\n%b\r\n" % HOST
        + with_length(CREATE, 500_000),
    ]  # fmt: skip
    for start in starts:
        async with client_of(server) as client:
            await client.send(start + part)
            await poll(lambda: used_bytes(server), until=lambda used: used == len(part))
        await wait_until_empty(server)


async def test_an_import_may_be_larger_than_the_budget(server: LoopbackServer) -> None:
    timer = {"executeAt": IN_TEN_SECONDS, "callbackUrl": "https://example.com/due"}
    lines = [
        msgspec.json.encode({"id": str(number), "payload": "x" * 200_000, **timer}) + b"\n"
        for number in range(2 * LIMIT_BYTES // 200_000)
    ]
    async with client_of(server) as client:
        await client.send(IMPORT + CHUNKED)
        # The longest is dropped, and so are the bytes of it that have been counted.
        await client.send(chunk(b"x" * 1_100_000) + chunk(b"x" * 900_000) + chunk(b"\n"))
        for line in lines:
            await client.send(chunk(line))
        await client.send(chunk(b"")[:-2] + b"\r\n")
        status, _, body = await client.answer()
        assert (status, body["created"], body["invalid"]) == (200, len(lines), 1)
        assert await used_bytes(server) == 0


async def test_a_line_that_is_not_complete_counts(server: LoopbackServer) -> None:
    async with client_of(server) as client:
        await client.send(IMPORT + CHUNKED + chunk(b"x" * 700_000))
        await poll(lambda: used_bytes(server), until=lambda used: used == 700_000)
        await client.send(chunk(b"x" * 700_000))
        await wait_until_empty(server)
        await client.send(chunk(b"\n{") + b"0\r\n\r\n")
        status, _, body = await client.answer()
        assert (status, body["invalid"]) == (200, 2)
