"""Clients that close their side of the connection as soon as they have sent their requests."""

import asyncio

import msgspec
import pytest

from tests.integration.server.connections.clients import limits, received, serving
from tests.integration.server.loopback_server import LoopbackServer
from tests.integration.server.pipelines import HOST, KEY
from tests.polling import PATIENCE_SECONDS, poll
from tests.unit.api.asgi_client import create_body

LIST = b"GET /timers HTTP/1.1\r\n%b%b\r\n" % (HOST, KEY)


def create(target: bytes = b"/timers") -> bytes:
    body = msgspec.json.encode(create_body())
    head = b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n"
    return head % (target, HOST, KEY, len(body)) + body


async def answers_to(server: LoopbackServer, data: bytes) -> list[bytes]:
    """The statuses until the server ends the connection, which it does soon."""
    reader, writer = await server.connect()
    writer.write(data)
    writer.write_eof()
    stream = await received(reader)
    writer.close()
    await poll(server.open_connections, lambda count: count == 0)
    return [part[:3] for part in stream.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        (create(), [b"201"]),
        (create(b"http://test/timers"), [b"201"]),
        (LIST, [b"200"]),
        (create() + LIST + create() + LIST, [b"201", b"200", b"201", b"200"]),
        (LIST * 20, [b"200"] * 20),
        (b"", []),
    ],
    ids=["fast create", "usual create", "list", "pipeline", "long pipeline", "nothing"],
)
async def test_complete_requests_are_answered(data: bytes, statuses: list[bytes]) -> None:
    async with serving(limits()) as clients, asyncio.timeout(PATIENCE_SECONDS):
        assert await answers_to(clients.server, data) == statuses
        assert await clients.server.timers_stored() == statuses.count(b"201")


@pytest.mark.parametrize("target", [b"/timers", b"http://test/timers"], ids=["fast", "usual"])
async def test_a_request_that_is_cut_off_is_refused_after_those_before_it(target: bytes) -> None:
    async with serving(limits()) as clients, asyncio.timeout(PATIENCE_SECONDS):
        data = LIST + create() + create(target)[:-1]
        assert await answers_to(clients.server, data) == [b"200", b"201", b"400"]
        assert await answers_to(clients.server, create(target)[:-1]) == [b"400"]
        assert await clients.server.timers_stored() == 1
        assert clients.server.api.app.bodies.used_bytes == 0
