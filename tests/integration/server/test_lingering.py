"""Answers to clients that are still sending when the server closes the connection."""

import asyncio
import http.client
from collections.abc import Iterator

import pytest

from tests.integration.server.loopback_server import loopback_server
from tests.unit.api.asgi_client import API_KEY, ApiBench

SENT_BYTES = 6 * 2**20
TRIES = 10


def body_in_pieces() -> Iterator[bytes]:
    for _ in range(SENT_BYTES // 65_536):
        yield b"x" * 65_536


def answer_to(port: int, path: str, headers: dict[str, str], *, is_chunked: bool) -> int:
    """The status of the answer, with the client that most Python programs use underneath."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        if is_chunked:
            connection.request("POST", path, body_in_pieces(), headers, encode_chunked=True)
        else:
            connection.request("POST", path, b"x" * SENT_BYTES, headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("path", ["/timers", "/api/v1/timers"])
@pytest.mark.parametrize(
    ("key", "status"), [(API_KEY, 413), ("wrong", 401)], ids=["too large", "no key"]
)
async def test_a_client_that_is_still_sending_sees_the_refusal(
    path: str, key: str, status: int, is_chunked: bool
) -> None:
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    async with loopback_server(ApiBench()) as server:
        for _ in range(TRIES):
            answer = await asyncio.to_thread(
                answer_to, server.port, path, headers, is_chunked=is_chunked
            )
            assert answer == status
