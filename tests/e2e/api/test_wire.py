"""HTTP as real clients speak it: pipelines, upgrades, old versions and lost connections."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import count_timers, in_ms, timer_body

pytestmark = pytest.mark.e2e

KEY = b"X-API-Key: " + API_KEY.encode() + b"\r\n"
HOST = b"Host: x\r\n"


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


def create_request(*headers: bytes, version: bytes = b"1.1", name: str = "t") -> bytes:
    body = timer_body("http://127.0.0.1:9/", in_ms(3_600_000), metadata=name)
    content = json.dumps(body).encode()
    lines = b"".join(header + b"\r\n" for header in headers)
    head = b"POST /timers HTTP/%b\r\n%b%b%bContent-Length: %d\r\n\r\n"
    return head % (version, HOST, KEY, lines, len(content)) + content


def list_request(offset: int) -> bytes:
    return b"GET /timers?limit=1&offset=%d HTTP/1.1\r\n%b%b\r\n" % (offset, HOST, KEY)


@asynccontextmanager
async def connected(
    server: ServerProcess,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    url = httpx.URL(server.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    async with asyncio.timeout(PATIENCE_SECONDS):
        yield reader, writer
    writer.close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, object]]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split()[1])
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return status, json.loads(await reader.readexactly(length))


async def test_pipelined_creates_and_lists_are_answered_in_order(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    before = sum((await count_timers(api)).values())
    requests = []
    for number in range(20):
        requests += [create_request(name=str(number)), list_request(number)]
    async with connected(server) as (reader, writer):
        writer.write(b"".join(requests))
        totals = []
        for _ in range(20):
            assert (await read_answer(reader))[0] == 201
            status, answer = await read_answer(reader)
            assert status == 200
            data = answer["data"]
            assert isinstance(data, dict)
            totals.append(data["total"] - before)
    assert totals == list(range(1, 21)), "each list sees exactly the creates before it"


@pytest.mark.parametrize("split", [False, True], ids=["one segment", "body later"])
async def test_an_offer_to_upgrade_is_ignored(
    server: ServerProcess, api: httpx.AsyncClient, split: bool
) -> None:
    before = (await count_timers(api))["pending"]
    offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
    request = create_request(*offer)
    async with connected(server) as (reader, writer):
        if split:
            head, _, body = request.partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n")
            await writer.drain()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await api.get("/healthz")
            writer.write(body)
        else:
            writer.write(request)
        assert (await read_answer(reader))[0] == 201
        writer.write(create_request())
        assert (await read_answer(reader))[0] == 201
    assert (await count_timers(api))["pending"] == before + 2


async def test_a_body_is_never_taken_for_a_request(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    before = (await count_timers(api))["pending"]
    smuggled = create_request()
    outer = b"POST /healthz HTTP/1.1\r\n%bConnection: Upgrade\r\nUpgrade: h2c\r\n" % HOST
    async with connected(server) as (reader, writer):
        writer.write(outer + b"Content-Length: %d\r\n\r\n" % len(smuggled) + smuggled)
        assert (await read_answer(reader))[0] == 405
        writer.write(list_request(0))
        assert (await read_answer(reader))[0] == 200
    assert (await count_timers(api))["pending"] == before


@pytest.mark.parametrize(
    ("headers", "trailers", "expected"),
    [(b"", KEY, 401), (KEY, b"X-API-Key: other\r\n", 400), (KEY, b"Host: y\r\n", 400)],
    ids=["key", "second key", "host"],
)
@pytest.mark.parametrize("path", [b"/timers", b"/api/v1/timers"])
async def test_trailers_are_no_headers(
    server: ServerProcess, path: bytes, headers: bytes, trailers: bytes, expected: int
) -> None:
    head = b"POST %b HTTP/1.1\r\n%b%bTransfer-Encoding: chunked\r\n\r\n" % (path, HOST, headers)
    async with connected(server) as (reader, writer):
        writer.write(head + b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
        assert (await read_answer(reader))[0] == expected


async def test_http_1_0_is_answered_and_closed(server: ServerProcess) -> None:
    async with connected(server) as (reader, writer):
        writer.write(create_request(b"Connection: keep-alive", version=b"1.0"))
        assert (await read_answer(reader))[0] == 201
        assert await reader.read() == b""


@pytest.mark.parametrize("with_key", [True, False], ids=["with key", "without key"])
async def test_the_server_stops_reading_from_a_client_that_reads_no_answers(
    server: ServerProcess, api: httpx.AsyncClient, with_key: bool
) -> None:
    key = KEY if with_key else b""
    bad = b"POST /timers HTTP/1.1\r\n%b%bContent-Length: 2\r\n\r\n{}" % (HOST, key)
    flood = bad * 1_000
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 80)) as client:
        client.settimeout(1.0)
        sent = 0
        try:
            while sent < 50_000_000:
                sent += client.send(flood)
        except TimeoutError:
            stopped_reading = True
        else:
            stopped_reading = False
    assert stopped_reading, f"{sent} bytes were taken"
    assert (await api.get("/healthz")).status_code == 200


async def test_clients_that_hang_up_with_requests_queued_leave_no_tracebacks(
    tmp_path: Path,
) -> None:
    pipeline = list_request(0) * 4 + create_request() + list_request(0) * 4
    async with ServerProcess(tmp_path) as server:
        for _ in range(50):
            async with connected(server) as (_, writer):
                writer.write(pipeline)
                await writer.drain()
                transport = writer.transport
                assert isinstance(transport, asyncio.WriteTransport)
                transport.abort()
        async with server.client() as api:
            assert (await api.get("/healthz")).status_code == 200
        await server.stop()
    assert not any("Traceback" in line or "Exception" in line for line in server.output)


async def test_a_stop_waits_for_creates_under_way(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    async with server, connected(server) as (reader, writer):
        writer.write(create_request() * 50)
        assert (await read_answer(reader))[0] == 201
        stopping = asyncio.create_task(server.stop())
        answers = 1
        try:
            while (await read_answer(reader))[0] == 201:
                answers += 1
        except asyncio.IncompleteReadError:
            pass
        assert await stopping == 0
    async with server, server.client() as api:
        assert (await count_timers(api))["pending"] >= answers


async def test_unfinished_bodies_take_bounded_memory(tmp_path: Path) -> None:
    mebibyte = 2**20
    head = b"POST /api/v1/timers/batch HTTP/1.1\r\n%b%b" % (HOST, KEY)
    start = head + b"Content-Length: %d\r\n\r\n" % (8 * mebibyte)
    async with (
        ServerProcess(tmp_path, MAX_BODIES_BYTES=str(16 * mebibyte)) as server,
        server.client() as api,
        AsyncExitStack() as stack,
    ):
        before = psutil.Process(server.pid).memory_info().rss
        unanswered: list[asyncio.Task[tuple[int, dict[str, object]]]] = []
        for _ in range(40):
            reader, writer = await stack.enter_async_context(connected(server))
            writer.write(start + bytes(4 * mebibyte))
            await writer.drain()
            unanswered.append(asyncio.create_task(read_answer(reader)))
        # The 14 MiB that large bodies may use have room for three of them.
        while len(unanswered) > 3:
            done, _ = await asyncio.wait(unanswered, return_when=asyncio.FIRST_COMPLETED)
            assert {task.result()[0] for task in done} == {503}
            unanswered = [task for task in unanswered if task not in done]
        grown = psutil.Process(server.pid).memory_info().rss - before
        assert grown < 64 * mebibyte, f"{grown / mebibyte:.0f} MiB for unfinished bodies"
        created = await api.post("/timers", json=timer_body("http://127.0.0.1:9/", in_ms(60_000)))
        assert created.status_code == 201
        for task in unanswered:
            task.cancel()
