"""`duetime listen` as a process, and its receiver on a real socket."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from msgspec import Raw

from duetime.cli.commands.run.receiver import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    Receiver,
)
from duetime.cli.output.received_callback import ReceivedCallback
from duetime.clock import SystemClock
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.domain.callback import CallbackProtocol, HttpCallback
from duetime.domain.outcome import Completed
from duetime.listener import (
    AddressUnavailable,
    bind,
    bind_next_free,
    take_connections,
    url_of,
)
from tests.real_server.command import Command
from tests.unit.delivery.claims import always, claim_of

pytestmark = pytest.mark.e2e


class Listening:
    """A receiver and the callbacks it has shown."""

    def __init__(self) -> None:
        self.shown: list[ReceivedCallback] = []
        self.receiver = Receiver(SystemClock(), self.shown.append)
        self.listener = bind_next_free("127.0.0.1", 0)
        self.url = url_of(self.listener)
        self.port: int = self.listener.getsockname()[1]

    async def talk(self, *pieces: bytes) -> bytes:
        """Send the pieces on one connection. Returns all bytes until it is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            writer.write_eof()
            async with asyncio.timeout(10):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    listening = Listening()
    await listening.receiver.start(listening.listener)
    yield listening
    await listening.receiver.stop()


async def test_requests_in_pieces_of_any_size_are_answered_in_order(listening: Listening) -> None:
    request = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
    chunked = (
        b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
        b"Connection: close\r\n\r\n2\r\nyo\r\n0\r\n\r\n"
    )
    stream = request + chunked
    answer = await listening.talk(*(stream[i : i + 7] for i in range(0, len(stream), 7)))
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert answer.count(b"HTTP/1.1 100 Continue\r\n") == 1
    assert [(c.method, c.target, c.body) for c in listening.shown] == [
        ("POST", "/a", b"hi"),
        ("POST", "/b", b"yo"),
    ]


@pytest.mark.parametrize("protocol", CallbackProtocol)
async def test_a_timer_of_either_api_is_completed(
    listening: Listening, protocol: CallbackProtocol
) -> None:
    destination = HttpDestination(HttpClient(), SystemClock(), default_timeout_ms=30_000)
    callback = HttpCallback(url=listening.url, payload=Raw(b'{"n": 1}'), protocol=protocol)
    outcome = await destination.deliver(claim_of(callback, attempt=2), always)
    await destination.close()
    assert isinstance(outcome, Completed)
    [shown] = listening.shown
    assert (shown.attempt, shown.payload) == ("2", {"n": 1})


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"garbage\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", b"400"),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (MAX_HEADER_BYTES + 1) + b"\r\n\r\n", b"431"),
        (b"GET /" + b"x" * (MAX_HEADER_BYTES + 1) + b" HTTP/1.1\r\n\r\n", b"431"),
    ],
)
async def test_garbage_is_refused_and_the_receiver_goes_on(
    listening: Listening, request_bytes: bytes, status: bytes
) -> None:
    answer = await listening.talk(request_bytes)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert not listening.shown
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.post(listening.url, content=b"{}")).status_code == 200


async def test_a_body_without_end_is_cut_off(listening: Listening) -> None:
    piece = b"x" * (1024 * 1024)
    head = b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"
    await listening.talk(head, *[piece] * (MAX_BODY_BYTES // len(piece) + 2))
    assert not listening.shown


async def test_an_address_in_use_is_reported_plainly(listening: Listening) -> None:
    with pytest.raises(AddressUnavailable, match=f"port {listening.port} is already in use"):
        take_connections(bind("127.0.0.1", listening.port), backlog=1)
    with pytest.raises(AddressUnavailable, match="is not an address of this machine"):
        bind("192.0.2.1", 0)
    with bind_next_free("127.0.0.1", listening.port) as other:
        assert other.getsockname()[1] > listening.port


async def test_the_command_prints_callbacks_as_they_arrive(tmp_path: Path) -> None:
    async with Command("listen", "--port", "0", directory=tmp_path) as command:
        greeting = await command.line()
        assert greeting.endswith("(Ctrl-C stops)")
        url = greeting.split()[2]
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(f"{url}/hook", json={"n": 1}, headers={"Timer-Attempt": "3"})
        line = await command.line()
        assert "POST /hook  -  attempt 3  retry  " in line
        assert line.endswith('  → 200 {"ok":true}')
        assert await command.end(signal.SIGINT) == 0
        assert command.errors == ""


async def test_the_command_prints_json_and_answers_with_the_given_status(tmp_path: Path) -> None:
    arguments = ("listen", "--port", "0", "--status", "503", "--json")
    async with Command(*arguments, directory=tmp_path) as command:
        url = (await command.error_line()).split()[2]
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(f"{url}/hook", json={"n": 1})
        assert answer.status_code == 503
        shown = json.loads(await command.line())
        assert (shown["target"], shown["payload"]) == ("/hook", {"n": 1})
        assert shown["answer"] == {"status": 503, "body": None}
        assert await command.end(signal.SIGTERM) == 0
