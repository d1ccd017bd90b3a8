"""One attempt against a real endpoint, in both protocols."""

import asyncio

import pytest
from msgspec import UNSET, Raw

from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.domain.callback import CallbackProtocol, HttpCallback, Payload
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.outcome import Completed, Failed, Interrupted, Outcome, Rescheduled
from duetime.testing.virtual_clock import START_AT, VirtualClock
from tests.integration.delivery.http_client.servers import (
    Peer,
    answer_each_with,
    answer_once_and_close,
    answer_once_and_watch,
    let_the_loop_turn,
    serve,
)
from tests.refusing_port import refusing_port
from tests.unit.delivery.claims import always, claim_of

STATUS, ANSWER = CallbackProtocol.STATUS, CallbackProtocol.ANSWER
BOTH = [STATUS, ANSWER]
NOT_FOLLOWED = ", but redirects are not followed"
NOT_200 = ', but only 200 with {"ok": true} completes the timer'


async def deliver(
    destination: HttpDestination,
    url: str,
    protocol: CallbackProtocol,
    *,
    payload: Payload = UNSET,
    headers: dict[str, str] | None = None,
    timeout_ms: int | None = None,
    attempt: int = 1,
    failures: int | None = None,
) -> Outcome:
    callback = HttpCallback(
        url=url, headers=headers, payload=payload, timeout_ms=timeout_ms, protocol=protocol
    )
    claim = claim_of(callback, attempt=attempt, failures=failures)
    return await destination.deliver(claim, always)


def raw_answer(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*chunks: bytes) -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("protocol", "payload", "body"),
    [
        (STATUS, Raw(b'{ "a": 1.0 }'), b'{ "a": 1.0 }'),
        (STATUS, UNSET, b""),
        (
            ANSWER,
            Raw(b'{ "a": 1.0 }'),
            b'{"namespace":"orders","id":"order-42","executeAt":"2030-01-01T00:00:00Z",'
            b'"attempt":3,"payload":{ "a": 1.0 }}',
        ),
        (
            ANSWER,
            UNSET,
            b'{"namespace":"orders","id":"order-42","executeAt":"2030-01-01T00:00:00Z",'
            b'"attempt":3,"payload":null}',
        ),
    ],
)
async def test_the_protocol_decides_the_body_and_not_the_headers(
    destination: HttpDestination, protocol: CallbackProtocol, payload: Payload, body: bytes
) -> None:
    async with serve(answer_each_with(raw_answer(200, b'{"ok":true}'))) as server:
        headers = {"X-Tag": "t", "webhook-id": "mine"}
        await deliver(
            destination, server.url(), protocol, payload=payload, headers=headers, attempt=3
        )
        request = server.peers[0].requests[0]
    assert request.body == body
    head = request.head.decode().split("\r\n")
    assert head[0] == "POST /hook HTTP/1.1"
    assert {"X-Tag: t", "Timer-Attempt: 3", "content-type: application/json"} < set(head)
    assert "webhook-id: 01980000-0000-7000-8000-00000000abcd" in head
    assert "webhook-id: mine" not in head


@pytest.mark.parametrize(
    ("status", "body", "by_status", "by_answer"),
    [
        (200, b'{"ok":true}', None, None),
        (200, b'{"ok": false}', None, 'answered {"ok": false}'),
        (200, b"", None, 'HTTP 200, but the answer is not {"ok": true|false}: it is empty'),
        (200, b"OK", None, 'HTTP 200, but the answer is not {"ok": true|false}: it is not JSON'),
        (201, b'{"ok":true}', None, "HTTP 201" + NOT_200),
        (202, b'{"ok":true}', None, "HTTP 202" + NOT_200),
        (204, b"", None, "HTTP 204" + NOT_200),
        (299, b'{"ok":true}', None, "HTTP 299" + NOT_200),
        (304, b"", "HTTP 304", "HTTP 304"),
        (404, b'{"ok":true}', 'HTTP 404: {"ok":true}', 'HTTP 404: {"ok":true}'),
        (500, b"", "HTTP 500", "HTTP 500"),
    ],
)
async def test_one_answer_means_different_things_in_the_two_protocols(
    destination: HttpDestination,
    status: int,
    body: bytes,
    by_status: str | None,
    by_answer: str | None,
) -> None:
    async with serve(answer_each_with(raw_answer(status, body))) as server:
        for protocol, error in ((STATUS, by_status), (ANSWER, by_answer)):
            outcome = await deliver(destination, server.url(), protocol)
            if error is None:
                assert outcome == Completed(sent_at=START_AT, answered_at=START_AT)
            else:
                assert isinstance(outcome, Failed)
                assert outcome.error == error
                assert outcome.blames_endpoint is (status >= 500)


@pytest.mark.parametrize(
    ("status", "body", "answer", "error"),
    [
        (503, b"  the queue\nis full\n", "  the queue\nis full\n", "HTTP 503: the queue is full"),
        (500, b" <html>oops</html>", " <html>oops</html>", "HTTP 500"),
        (500, b"a\0b\xff", "a\ufffdb", "HTTP 500: a\ufffdb"),
        (400, b"x" * 2_000, "x" * 1_024, "HTTP 400: " + "x" * 199 + "\N{HORIZONTAL ELLIPSIS}"),
        (400, b"x" * 1_023 + "ä".encode(), "x" * 1_023, None),
        (302, b"moved", "moved", f"HTTP 302{NOT_FOLLOWED}: moved"),
        (302, b"<html>moved</html>", "<html>moved</html>", f"HTTP 302{NOT_FOLLOWED}"),
        (500, b"", None, "HTTP 500"),
        (500, b"\xff", None, "HTTP 500"),
    ],
)
async def test_the_beginning_of_a_failing_answer_is_kept(
    destination: HttpDestination, status: int, body: bytes, answer: str | None, error: str | None
) -> None:
    async with serve(answer_each_with(raw_answer(status, body))) as server:
        outcome = await deliver(destination, server.url(), STATUS)
    assert isinstance(outcome, Failed)
    assert outcome.answer == answer
    assert error is None or outcome.error == error


async def test_an_answer_that_decides_nothing_is_kept(destination: HttpDestination) -> None:
    async with serve(answer_each_with(raw_answer(200, b"OK"))) as server:
        outcome = await deliver(destination, server.url(), ANSWER)
    assert isinstance(outcome, Failed)
    assert outcome.answer == "OK"


async def test_nothing_of_an_answer_is_kept_when_that_is_turned_off() -> None:
    destination = HttpDestination(HttpClient(), VirtualClock(), 5_000, kept_answer_bytes=0)
    async with serve(answer_each_with(raw_answer(500, b"secret"))) as server:
        outcome = await deliver(destination, server.url(), STATUS)
    assert isinstance(outcome, Failed)
    assert (outcome.answer, outcome.error) == (None, "HTTP 500")
    await destination.close()


async def test_the_endpoint_may_reschedule_the_timer(destination: HttpDestination) -> None:
    body = b'{"ok":false,"nextExecuteAt":"2030-01-01T02:00:00+01:00"}'
    async with serve(answer_each_with(raw_answer(200, body))) as server:
        assert await deliver(destination, server.url(), ANSWER) == Rescheduled(
            sent_at=START_AT,
            answered_at=START_AT,
            next_execute_at=Instant(START_AT + 3_600_000_000),
        )
        assert isinstance(await deliver(destination, server.url(), STATUS), Completed)


@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize(
    ("status", "blames_endpoint"),
    [
        *((status, False) for status in (302, 304, 400, 401, 403, 404, 410, 499)),
        *((status, True) for status in (408, 429, 500, 502, 503, 504, 599)),
    ],
)
async def test_a_refused_request_does_not_blame_the_endpoint(
    destination: HttpDestination, protocol: CallbackProtocol, status: int, blames_endpoint: bool
) -> None:
    async with serve(answer_each_with(raw_answer(status))) as server:
        outcome = await deliver(destination, server.url(), protocol)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(f"HTTP {status}")
    assert outcome.blames_endpoint == blames_endpoint


@pytest.mark.parametrize("protocol", BOTH)
async def test_timeouts_and_closed_connections_blame_the_endpoint(
    destination: HttpDestination, protocol: CallbackProtocol
) -> None:
    async def stay_silent(peer: Peer) -> None:
        await peer.wait_until_client_closes()

    async with serve(stay_silent) as server:
        outcome = await deliver(destination, server.url(), protocol, timeout_ms=200)
        assert isinstance(outcome, Failed)
        assert (outcome.error, outcome.blames_endpoint) == ("timed out after 0.2 s", True)
    async with serve(answer_once_and_close(b"")) as server:
        outcome = await deliver(destination, server.url(), protocol)
        assert isinstance(outcome, Failed)
        assert outcome.blames_endpoint
    with refusing_port() as port:
        outcome = await deliver(destination, f"http://127.0.0.1:{port}/", protocol)
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.blames_endpoint) == ("connection refused", True)


@pytest.mark.parametrize("protocol", BOTH)
async def test_a_dead_kept_alive_connection_interrupts_the_attempt(
    destination: HttpDestination, protocol: CallbackProtocol
) -> None:
    async def answer_one_and_close_at_the_next(peer: Peer) -> None:
        await peer.read_request()
        peer.send(raw_answer(200, b'{"ok":true}'))
        await peer.read_request()
        peer.close()

    async with serve(answer_one_and_close_at_the_next) as server:
        assert isinstance(await deliver(destination, server.url(), protocol), Completed)
        assert isinstance(await deliver(destination, server.url(), protocol), Interrupted)


async def test_a_retry_reuses_the_connection(destination: HttpDestination) -> None:
    async with serve(answer_each_with(raw_answer(503))) as server:
        await deliver(destination, server.url(), STATUS)
        await deliver(destination, server.url(), STATUS, attempt=2)
        assert len(server.peers) == 1


async def test_an_interrupted_attempt_is_repeated_on_a_new_connection(
    destination: HttpDestination,
) -> None:
    async with serve(answer_each_with(raw_answer(503))) as server:
        await deliver(destination, server.url(), STATUS)
        await deliver(destination, server.url(), STATUS, attempt=2, failures=0)
        await deliver(destination, server.url(), STATUS, attempt=3, failures=1)
        assert len(server.peers) == 3


@pytest.mark.parametrize(
    ("protocol", "status", "body"),
    [
        (STATUS, 503, b""),
        (STATUS, 404, b""),
        (ANSWER, 503, b""),
        (ANSWER, 204, b""),
        (ANSWER, 200, b'{"ok": false}'),
        (ANSWER, 200, b"nonsense"),
    ],
)
@pytest.mark.parametrize(
    ("retry_after", "expected_ms"),
    [("7", 7_000), ("Tue, 01 Jan 2030 00:00:09 GMT", 9_000), ("soon", None), ("-1", None)],
)
async def test_a_failed_answer_may_set_retry_after(
    destination: HttpDestination,
    protocol: CallbackProtocol,
    status: int,
    body: bytes,
    retry_after: str,
    expected_ms: int | None,
) -> None:
    raw = raw_answer(status, body, f"Retry-After: {retry_after}")
    async with serve(answer_each_with(raw)) as server:
        outcome = await deliver(destination, server.url(), protocol)
    assert isinstance(outcome, Failed)
    assert outcome.retry_after_ms == expected_ms


@pytest.mark.parametrize(
    "raw",
    [
        chunked(b'{"ok"', b":", b"true}"),
        chunked(*(bytes([byte]) for byte in b'{"ok": true, "note": "\xc3\xa9"}')),
        raw_answer(200, b'{"ok":true}'),
        b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}',
    ],
)
async def test_an_answer_may_come_in_any_pieces(destination: HttpDestination, raw: bytes) -> None:
    async def send_bytes_one_by_one(peer: Peer) -> None:
        while True:
            await peer.read_request()
            await peer.send_bytes_one_by_one(raw)

    async with serve(send_bytes_one_by_one) as server:
        for _ in range(2):
            assert isinstance(await deliver(destination, server.url(), ANSWER), Completed)
        assert len(server.peers) == 1


async def test_an_answer_may_end_with_its_connection(destination: HttpDestination) -> None:
    async with serve(answer_once_and_close(b'HTTP/1.0 200 OK\r\n\r\n{"ok":true}')) as server:
        assert isinstance(await deliver(destination, server.url(), ANSWER), Completed)


@pytest.mark.parametrize(
    "raw",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"ok":true}',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{"ok":true}\r\n',
    ],
)
async def test_an_incomplete_answer_does_not_complete_the_timer(
    destination: HttpDestination, raw: bytes
) -> None:
    async with serve(answer_once_and_close(raw)) as server:
        outcome = await deliver(destination, server.url(), ANSWER)
    assert isinstance(outcome, Failed)
    assert outcome.error == "connection closed in the middle of the answer"
    assert outcome.blames_endpoint


@pytest.mark.parametrize("framing", [b"Content-Length: 65537\r\n", b""])
async def test_an_answer_beyond_the_limit_decides_nothing(
    destination: HttpDestination, framing: bytes
) -> None:
    body = b'{"ok":true}' + b" " * 65_526
    raw = b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n" + body
    async with serve(answer_once_and_watch(raw)) as server:
        outcome = await deliver(destination, server.url(), ANSWER)
        assert isinstance(outcome, Failed)
        assert outcome.error.endswith("it is longer than 65536 bytes")
        await server.peers[0].see_client_close()


async def test_an_answer_of_exactly_the_limit_is_read(destination: HttpDestination) -> None:
    body = b'{"ok":true}' + b" " * 65_525
    async with serve(answer_each_with(raw_answer(200, body))) as server:
        assert isinstance(await deliver(destination, server.url(), ANSWER), Completed)


async def test_an_endless_answer_is_cut_off_long_before_the_timeout(
    destination: HttpDestination,
) -> None:
    async def never_end(peer: Peer) -> None:
        await peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        closing = asyncio.ensure_future(peer.wait_until_client_closes())
        while not closing.done():
            peer.send(b"2\r\nxx\r\n" * 1_000)
            await let_the_loop_turn()

    async with serve(never_end) as server:
        async with asyncio.timeout(10):
            outcome = await deliver(destination, server.url(), ANSWER, timeout_ms=60_000)
        assert isinstance(outcome, Failed)
        assert outcome.error.endswith("it is longer than 65536 bytes")
        await server.peers[0].see_client_close()


async def test_an_answer_that_trickles_ends_with_the_timeout(destination: HttpDestination) -> None:
    async def trickle(peer: Peer) -> None:
        await peer.read_request()
        peer.send(b'HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n{"ok":true}')
        await peer.wait_until_client_closes()

    async with serve(trickle) as server:
        outcome = await deliver(destination, server.url(), ANSWER, timeout_ms=200)
        assert isinstance(outcome, Failed)
        assert outcome.error == "timed out after 0.2 s"
        await server.peers[0].see_client_close()


@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://a/" + "x" * 2_040, "is longer than 2048 characters"),
        ("ftp://a/", "must be an http or https URL"),
        ("a.example/hook", "must be an http or https URL"),
        ("", "must be an http or https URL"),
        ("https:///hook", "has no host"),
        ("http://a/ b", "contains a space or control character"),
    ],
)
async def test_an_invalid_url_is_refused_at_creation(
    destination: HttpDestination, protocol: CallbackProtocol, url: str, problem: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        destination.check(HttpCallback(url=url, protocol=protocol))
    assert (refusal.value.field, refusal.value.problem) == ("callback.url", problem)


async def test_the_longest_url_is_accepted(destination: HttpDestination) -> None:
    destination.check(HttpCallback(url="http://a/" + "x" * 2_039, protocol=ANSWER))
