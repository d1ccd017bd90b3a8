"""Bytes that no decent client sends. The server answers 4xx or hangs up, and keeps working."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from duetime.domain.limits import MAX_HEAD_BYTES
from duetime.server.lingering_close import MAX_BYTES
from tests.real_server.api_connection import (
    ApiAnswer,
    ApiConnection,
    ConnectionEnded,
    request_bytes,
)
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import (
    count_timers,
    create_soon,
    in_ms,
    timer_body,
    wait_for_status,
)

pytestmark = pytest.mark.e2e

HOUR_MS = 3_600_000
KEY = f"X-API-Key: {API_KEY}\r\n".encode()
POST = b"POST /timers HTTP/1.1\r\nHost: x\r\n" + KEY
GET = b"GET /timers HTTP/1.1\r\nHost: x\r\n" + KEY
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


@dataclass(frozen=True)
class Stored:
    """The timers that were there before a test."""

    api: httpx.AsyncClient
    before: dict[str, int]

    async def check_unchanged(self) -> None:
        assert await count_timers(self.api) == self.before


@pytest.fixture(autouse=True)
async def stored(server: ServerProcess, receiver: CallbackReceiver) -> AsyncIterator[Stored]:
    """After every test the server still works, and it has logged no error."""
    seen_logs, seen_output = len(server.logs), len(server.output)
    async with server.client() as api:
        yield Stored(api, await count_timers(api))
        assert (await api.get("/healthz")).status_code == 200
        timer_id = await create_soon(api, f"{receiver.url}/still-alive")
        await wait_for_status(api, timer_id, "completed")
    errors = [entry for entry in server.logs[seen_logs:] if entry["level"] in ("error", "critical")]
    assert not errors
    assert not any("Traceback" in line for line in server.output[seen_output:])


def with_body(body: bytes, *header_lines: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in header_lines)
    return POST + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def create_bytes(**more: Any) -> bytes:
    return json.dumps(timer_body("https://example.com", in_ms(HOUR_MS), **more)).encode()


UNREADABLE = {
    "no HTTP at all": b"garbage\r\n\r\n",
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown method": GET.replace(b"GET", b"BREW") + b"\r\n",
    "raw bytes in the path": GET.replace(b"/timers", b"/timers/\xff\xfe") + b"\r\n",
    "raw bytes in the query": GET.replace(b"/timers", b"/timers?status=\xff") + b"\r\n",
    "a NUL in a header": GET + b"X-Tag: a\0b\r\n\r\n",
    "a folded header": GET + b"X-Tag: a\r\n b\r\n\r\n",
    "a header without a name": GET + b": a\r\n\r\n",
    "a space in a header name": GET + b"X Tag: a\r\n\r\n",
    "bare line feeds": (GET + b"\r\n").replace(b"\r\n", b"\n"),
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length that is no number": POST + b"Content-Length: 0x10\r\n\r\n",
    "a length beyond 64 bits": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "a length and chunks": POST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk size that is none": CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"2\r\n{}{}\r\n0\r\n\r\n",
    "a chunk size beyond 64 bits": CHUNKED + b"fffffffffffffffff\r\n",
}

REFUSED = {
    "a body that is no UTF-8": (with_body(b'{"execute_at": "\xff\xfe"}'), 400),
    "half a surrogate pair": (with_body(create_bytes(idempotency_key="\ud800")), 400),
    "a byte order mark of UTF-16": (with_body("{}".encode("utf-16")), 400),
    "no body": (with_body(b""), 400),
    "a body that is cut off": (with_body(create_bytes()[:-5]), 400),
    "two bodies": (with_body(create_bytes() * 2), 400),
    "nesting without end": (with_body(b"[" * 200_000), 400),
    "a length above the limit": (POST + b"Content-Length: 1048577\r\n\r\n", 413),
    "escaped bytes in the id": (GET.replace(b"/timers", b"/timers/%ff%00") + b"\r\n", 400),
    "a path out of the tree": (GET.replace(b"/timers", b"/timers/../../etc/passwd") + b"\r\n", 404),
    "an escaped path": (GET.replace(b"/timers", b"/%2e%2e/%2e%2e/etc/passwd") + b"\r\n", 404),
    "another method": (GET.replace(b"GET", b"PATCH") + b"\r\n", 405),
    "the whole server": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a wrong key beside the right one": (
        GET.replace(KEY, b"X-API-Key: a\r\n" + KEY) + b"\r\n",
        401,
    ),
    "a key of raw bytes": (GET.replace(KEY, b"X-API-Key: \xff\xc3\r\n") + b"\r\n", 401),
    "a flood of parameters": (
        GET.replace(b"/timers", b"/timers?" + b"a=1&" * 5_000) + b"\r\n",
        400,
    ),
    "a URL without end": (GET.replace(b"/timers", b"/timers?" + b"a" * 200_000) + b"\r\n", 431),
    "a header without end": (GET + b"X-Big: " + b"a" * 100_000 + b"\r\n\r\n", 431),
    "headers without end": (GET + b"X-Small: a\r\n" * 20_000 + b"\r\n", 431),
}


SMUGGLED_HEADERS: list[dict[str, str]] = [
    {"X-Tag": "a\r\nX-Injected: b"},
    {"X-Tag": "a\nX-Injected: b"},
    {"X-Tag\r\nX-Injected": "a"},
    {"X-Tag: a": "b"},
    {"": "a"},
    {"X-Tag": "a\0b"},
    {"X-Tag": "\u4e16"},
    {"X-Tag": "a" * 20_000},
    {f"X-{number}": "a" for number in range(100)},
]


async def test_bytes_that_are_not_http_are_answered_and_the_connection_is_closed(
    server: ServerProcess, stored: Stored
) -> None:
    for name, data in UNREADABLE.items():
        answer, rest = await talk(server, data)
        assert_refused(answer, 400, name)
        assert answer.headers["connection"] == "close", name
        assert rest == b"", name
    await stored.check_unchanged()


@on_every_database
async def test_wrong_requests_are_refused(server: ServerProcess, stored: Stored) -> None:
    for name, (data, status) in REFUSED.items():
        async with ApiConnection(server.url) as connection:
            await connection.send(data)
            assert_refused(await connection.read_answer(), status, name)
    await stored.check_unchanged()


@on_every_database
async def test_headers_cannot_be_smuggled_into_callbacks(
    api: httpx.AsyncClient, server: ServerProcess, stored: Stored
) -> None:
    for headers in SMUGGLED_HEADERS:
        body = timer_body("https://example.com", in_ms(HOUR_MS), callback={"headers": headers})
        answer = await api.post("/timers", json=body)
        assert answer.status_code in (400, 413), headers
        assert answer.json()["code"] == 2
        assert "callback.headers" in answer.json()["message"]
    await stored.check_unchanged()


@on_every_database
async def test_requests_cannot_be_smuggled_into_the_url(
    api: httpx.AsyncClient, server: ServerProcess, stored: Stored
) -> None:
    for url in ("http://x/\r\nX-Injected: b", "http://x/ HTTP/1.1", "http://x\r\n/", "http://x/\0"):
        answer = await api.post("/timers", json=timer_body(url, in_ms(HOUR_MS)))
        assert (answer.status_code, answer.json()["code"]) == (400, 2), url
        assert "callback.url" in answer.json()["message"]
    await stored.check_unchanged()


async def test_a_body_that_never_ends_is_cut_off_at_the_limit(
    server: ServerProcess, stored: Stored
) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    async with ApiConnection(server.url) as connection:
        await connection.send(CHUNKED + chunk * 17)
        assert_refused(await connection.read_answer(), 413)
    await stored.check_unchanged()


async def test_a_header_that_never_ends_is_cut_off_at_the_limit(server: ServerProcess) -> None:
    async with ApiConnection(server.url) as connection:
        await connection.send(GET + b"X-Big: ")
        for _ in range(50):
            await connection.send(b"a" * (MAX_HEAD_BYTES // 10))
        assert_refused(await connection.read_answer(), 431)
        sent = 0
        with suppress(ConnectionEnded):
            while sent <= 2 * MAX_BYTES:
                await connection.send(b"a" * 1_000_000)
                sent += 1_000_000
    assert sent <= 2 * MAX_BYTES, "the server reads on without end"


@on_every_database
async def test_a_request_that_is_cut_off_stores_nothing(
    server: ServerProcess, stored: Stored
) -> None:
    whole = with_body(create_bytes())
    for length in (10, len(POST) - 5, len(whole) - 40, len(whole) - 1):
        async with ApiConnection(server.url) as connection:
            await connection.send(whole[:length])
            connection.send_end()
            # A client that waits for an answer learns of a body that is cut off.
            status_line = (await connection.read_to_end()).partition(b"\r\n")[0]
            assert status_line == (b"" if length < len(POST) else b"HTTP/1.1 400 Bad Request")
    await stored.check_unchanged()


@on_every_database
async def test_clients_may_leave_before_the_answer(server: ServerProcess, stored: Stored) -> None:
    for _ in range(20):
        async with ApiConnection(server.url) as connection:
            await connection.send(GET + b"\r\n")
    await stored.check_unchanged()


@on_every_database
async def test_pipelined_requests_are_answered_in_order(server: ServerProcess) -> None:
    requests = [
        request_bytes("POST", "/timers", timer_body("https://example.com/0", in_ms(HOUR_MS))),
        request_bytes("GET", "/timers/none"),
        request_bytes("POST", "/timers", {"callback": 1}),
        request_bytes("GET", "/timers?limit=1"),
        request_bytes("GET", "/nowhere"),
        request_bytes("POST", "/timers", timer_body("https://example.com/1", in_ms(HOUR_MS))),
    ]
    stream = b"".join(requests)
    for size in (len(stream), 7):
        async with ApiConnection(server.url) as connection:
            for first in range(0, len(stream), size):
                await connection.send(stream[first : first + size])
            answers = [await connection.read_answer() for _ in requests]
        assert [answer.status for answer in answers] == [201, 400, 400, 200, 404, 201]
        assert all(answer.body is not None for answer in answers)


async def test_garbage_after_a_request_does_not_spoil_it(server: ServerProcess) -> None:
    body = timer_body("https://example.com/0", in_ms(HOUR_MS))
    async with ApiConnection(server.url) as connection:
        first = await connection.request("POST", "/timers", body)
        await connection.send(request_bytes("GET", f"/timers/{first.body['data']['id']}"))
        second = await connection.read_answer()
        await connection.send(b"\0\0\0garbage\r\n\r\n")
        third = await connection.read_answer()
        assert await connection.read_to_end() == b""
    assert (first.status, second.status) == (201, 200)
    assert_refused(third, 400)


async def test_an_upgrade_is_ignored(server: ServerProcess) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    async with ApiConnection(server.url) as connection:
        await connection.send(GET + upgrade + key + b"\r\n")
        answer = await connection.read_answer()
    assert (answer.status, answer.body["code"]) == (200, 0)


async def talk(server: ServerProcess, data: bytes) -> tuple[ApiAnswer, bytes]:
    """The answer to the bytes, and all bytes after it until the server hangs up."""
    async with ApiConnection(server.url) as connection:
        await connection.send(data)
        return await connection.read_answer(), await connection.read_to_end()


def assert_refused(answer: ApiAnswer, status: int, name: str = "") -> None:
    assert answer.status == status, (name, answer)
    assert answer.body is not None, (name, answer)
    assert set(answer.body) == {"code", "message", "data"}
    assert answer.body["code"] == {401: 4, 404: 3}.get(status, 2)
    assert answer.body["message"]
    assert answer.body["data"] is None
