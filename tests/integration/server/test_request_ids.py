"""Every answer has an `X-Request-Id`, whoever gives it, and so has every line logged meanwhile."""

import asyncio
import re
from collections.abc import AsyncIterator

import msgspec
import pytest
import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import LogCapture

from duetime.domain.errors import StoreUnavailable
from duetime.server.connection_limits import ConnectionLimits
from duetime.telemetry.current_work import add_current_work
from tests.integration.server.loopback_server import LoopbackServer, loopback_server
from tests.integration.server.pipelines import HOST, KEY
from tests.polling import PATIENCE_SECONDS, poll
from tests.unit.api.asgi_client import ApiBench, create_body

OWN = b"X-Request-ID: own-id-1 \t\r\n"
"""Blanks after a value are no part of it."""

CREATE = msgspec.json.encode(create_body())
PLAIN_CREATE = b"POST /timers HTTP/1.1\r\n" + HOST + KEY + b"Content-Length: %d\r\n" % len(CREATE)
V1_CREATE = b"POST /api/v1/timers HTTP/1.1\r\n" + HOST + KEY

REQUESTS = {
    "fast create": (PLAIN_CREATE, CREATE, 201),
    "fast create refused": (
        b"POST /timers HTTP/1.1\r\n" + HOST + KEY + b"Content-Length: 2\r\n",
        b"{}",
        400,
    ),
    "usual create": (PLAIN_CREATE + b"X-Tag: a\r\nX-Tag: b\r\n", CREATE, 201),
    "v1": (V1_CREATE + b"Content-Length: 2\r\n", b"{}", 400),
    "no key": (b"GET /timers HTTP/1.1\r\n" + HOST, b"", 401),
    "no path": (b"GET /nothing HTTP/1.1\r\n" + HOST, b"", 404),
    "no v1 path": (b"GET /api/v1/nothing HTTP/1.1\r\n" + HOST, b"", 404),
    "no method": (b"DELETE /healthz HTTP/1.1\r\n" + HOST, b"", 405),
    "health": (b"GET /healthz HTTP/1.1\r\n" + HOST, b"", 200),
    "probe": (b"GET /livez HTTP/1.1\r\n" + HOST, b"", 200),
    "document": (b"GET /openapi.json HTTP/1.1\r\n" + HOST, b"", 200),
    "no host": (b"GET /timers HTTP/1.1\r\n", b"", 400),
    "version": (b"GET /timers HTTP/2.0\r\n" + HOST, b"", 505),
    "proxy": (b"CONNECT a:1 HTTP/1.1\r\n" + HOST, b"", 400),
    "large head": (b"GET / HTTP/1.1\r\n" + HOST + b"X: %b\r\n" % (b"x" * 80_000), b"", 431),
    "large body": (V1_CREATE + b"Content-Length: 99999999\r\n", b"", 413),
    "bad chunk": (V1_CREATE + b"Transfer-Encoding: chunked\r\n", b"nonsense\r\n", 400),
}


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with asyncio.timeout(PATIENCE_SECONDS), loopback_server(ApiBench()) as server:
        yield server


async def answer_to(server: LoopbackServer, request: bytes) -> tuple[int, list[bytes]]:
    """The status and the request ids of the answer."""
    reader, writer = await server.connect()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), re.findall(rb"\r\nx-request-id: ([^\r\n]*)", head)


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_answer_has_the_id_of_the_client_or_a_new_one(
    server: LoopbackServer, name: str
) -> None:
    head, body, status = REQUESTS[name]
    line, _, headers = head.partition(b"\r\n")
    with_id = line + b"\r\n" + OWN + headers
    assert await answer_to(server, with_id + b"\r\n" + body) == (status, [b"own-id-1"])
    found, ids = await answer_to(server, head + b"\r\n" + body)
    assert found == status
    assert [len(each) for each in ids] == [16]


async def test_bytes_that_are_no_request_get_an_id(server: LoopbackServer) -> None:
    status, ids = await answer_to(server, b"\x16\x03\x01nonsense\r\n\r\n")
    assert (status, len(ids)) == (400, 1)


async def test_an_unsafe_id_is_not_repeated(server: LoopbackServer) -> None:
    head, body, status = REQUESTS["fast create"]
    for unsafe in (b"a b", b"x" * 129, b"<script>", b"caf\xe9"):
        answered, ids = await answer_to(server, head + b"X-Request-Id: %b\r\n\r\n" % unsafe + body)
        assert answered == status
        assert [len(each) for each in ids] == [16]


async def test_a_connection_that_is_one_too_many_gets_an_id() -> None:
    limits = ConnectionLimits(max_connections=1, max_surplus=10)
    async with asyncio.timeout(PATIENCE_SECONDS), loopback_server(ApiBench(), limits) as server:
        _, writer = await server.connect()
        writer.write(V1_CREATE + b"Content-Length: 99\r\n\r\n{")
        await poll(server.open_connections, lambda count: count == 1)
        request = b"GET /timers HTTP/1.1\r\n" + HOST
        assert await answer_to(server, request + OWN + b"\r\n") == (503, [b"own-id-1"])
        _, ids = await answer_to(server, request + b"\r\n")
        assert [len(each) for each in ids] == [16]
        writer.close()


@pytest.mark.parametrize("name", ["fast create", "usual create"])
async def test_lines_about_a_request_have_its_id(
    server: LoopbackServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = LogCapture()
    structlog.configure(processors=[merge_contextvars, add_current_work, lines])
    store = server.api.store

    async def refuse(*_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(store, "create", refuse)
    head, body, _ = REQUESTS[name]
    try:
        assert await answer_to(server, head + OWN + b"\r\n" + body) == (503, [b"own-id-1"])
        _, (new,) = await answer_to(server, head + b"\r\n" + body)
    finally:
        structlog.reset_defaults()
    logged = [line["request_id"] for line in lines.entries if line["event"] == "api.unavailable"]
    assert logged == ["own-id-1", new.decode()]
