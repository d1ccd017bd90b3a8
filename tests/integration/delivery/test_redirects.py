"""Redirects fail an attempt, and say where they lead."""

import pytest
from msgspec import UNSET

from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.domain.callback import CallbackProtocol, HttpCallback
from duetime.domain.limits import MAX_REASON_CHARACTERS
from duetime.domain.outcome import Failed
from duetime.testing.virtual_clock import VirtualClock
from tests.integration.delivery.http_client.servers import answer_each_with, serve
from tests.unit.delivery.claims import always, claim_of

NOT_FOLLOWED = ", but redirects are not followed"


async def error_of(
    destination: HttpDestination,
    head: bytes,
    body: bytes = b"",
    protocol: CallbackProtocol = CallbackProtocol.STATUS,
) -> str:
    raw = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
    async with serve(answer_each_with(raw)) as server:
        callback = HttpCallback(
            url=server.url(), headers=None, payload=UNSET, timeout_ms=None, protocol=protocol
        )
        outcome = await destination.deliver(claim_of(callback), always)
        assert len(server.peers[0].requests) == 1
    assert isinstance(outcome, Failed)
    return outcome.error


@pytest.mark.parametrize("protocol", CallbackProtocol)
@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 Other", b"307 T", b"308 P"])
async def test_the_error_says_where_a_redirect_leads(
    destination: HttpDestination, status: bytes, protocol: CallbackProtocol
) -> None:
    head = status + b"\r\nLocation: https://new.example/due"
    error = await error_of(destination, head, b'{"see": "there"}', protocol)
    assert error == (
        f"HTTP {status[:3].decode()}{NOT_FOLLOWED} (Location: https://new.example/due): "
        '{"see": "there"}'
    )


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"302 Found", NOT_FOLLOWED),
        (b"302 Found\r\nLocation:", NOT_FOLLOWED),
        (
            b"302 Found\r\nlocation: /caf\xc3\xa9\xc2\x9b[31m",
            f"{NOT_FOLLOWED} (Location: /café [31m)",
        ),
        (
            b"302 Found\r\nLocation: /" + b"x" * 5_000,
            f"{NOT_FOLLOWED} (Location: /{'x' * (MAX_REASON_CHARACTERS - 2)}…)",
        ),
        (b"304 Not Modified\r\nLocation: /x", ""),
        (b"404 Not Found\r\nLocation: /x", ""),
    ],
)
async def test_a_location_is_made_harmless(
    destination: HttpDestination, head: bytes, told: str
) -> None:
    assert await error_of(destination, head) == f"HTTP {head[:3].decode()}{told}"


async def test_a_location_is_not_kept_when_nothing_of_an_answer_is() -> None:
    destination = HttpDestination(HttpClient(), VirtualClock(), 5_000, kept_answer_bytes=0)
    error = await error_of(destination, b"302 Found\r\nLocation: /login?token=secret")
    assert error == f"HTTP 302{NOT_FOLLOWED}"
    await destination.close()
