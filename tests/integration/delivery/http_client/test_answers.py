"""Every way in which HTTP/1.x ends an answer is understood, and nothing else is accepted."""

import pytest

from duetime.delivery.http_client import DeliveryFailure, HttpAnswer, HttpClient, InvalidAnswer
from tests.integration.delivery.http_client.servers import (
    OK,
    Peer,
    answer_each_with,
    answer_once_and_close,
    answer_once_and_watch,
    post,
    serve,
)

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3;extension=1\r\nabc\r\n1\r\nd\r\n0\r\nRetry-After: 9\r\n\r\n"
)
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nabcd"

DELIMITED = {
    "content-length": (OK, 200, b"ok"),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b""),
    "chunked": (CHUNKED, 200, b"abcd"),
    "no-reason": (b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", 200, b"x"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "204-length-0": (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204, b""),
    "304": (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", 304, b""),
    "redirect": (
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        302,
        b"",
    ),
    "server-error": (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", 503, b"busy"),
    "100-continue": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok"),
    "103-then-102": (
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nRetry-After: 7\r\n\r\n"
        b"HTTP/1.1 102 Processing\r\n\r\n" + OK,
        200,
        b"ok",
    ),
    "http-1.0-keep-alive": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        200,
        b"ok",
    ),
    "upgrade-offer": (
        b"HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade, Keep-Alive\r\n"
        b"Content-Length: 2\r\n\r\nok",
        200,
        b"ok",
    ),
}


@pytest.mark.parametrize(("raw", "status", "body"), DELIMITED.values(), ids=DELIMITED)
async def test_delimited_answer_leaves_the_connection_usable(
    client: HttpClient, raw: bytes, status: int, body: bytes
) -> None:
    async with serve(answer_each_with(raw)) as server:
        for _ in range(2):
            answer = await post(client, server.url())
            assert (answer.status, answer.retry_after, answer.body) == (status, None, body)
        assert len(server.peers) == 1


@pytest.mark.parametrize(("raw", "status", "body"), DELIMITED.values(), ids=DELIMITED)
async def test_answer_may_arrive_byte_by_byte(
    client: HttpClient, raw: bytes, status: int, body: bytes
) -> None:
    async def behave(peer: Peer) -> None:
        while True:
            await peer.read_request()
            await peer.send_bytes_one_by_one(raw)

    async with serve(behave) as server:
        for _ in range(2):
            answer = await post(client, server.url())
            assert (answer.status, answer.retry_after, answer.body) == (status, None, body)
        assert len(server.peers) == 1


@pytest.mark.parametrize(
    "raw",
    [
        UNTIL_CLOSE,
        b"HTTP/1.0 200 OK\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"4\r\nabcd\r\n0\r\n\r\n",
    ],
)
async def test_answer_that_ends_with_its_connection(client: HttpClient, raw: bytes) -> None:
    async with serve(answer_once_and_close(raw)) as server:
        for _ in range(2):
            assert await post(client, server.url()) == HttpAnswer(200, None, b"abcd", False)
        assert len(server.peers) == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_client_closes_connections_that_the_server_will_not_keep(
    client: HttpClient, raw: bytes
) -> None:
    async with serve(answer_once_and_watch(raw)) as server:
        assert (await post(client, server.url())).body == b"ok"
        await server.peers[0].see_client_close()
        assert (await post(client, server.url())).body == b"ok"
        assert len(server.peers) == 2


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a", b"0123456789"),
        (b"HTTP/1.1 500 OK\r\nContent-Length: 9999999999\r\n\r\n0123456789a", b"0123456789"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"6\r\n012345\r\n6\r\n6789ab\r\n0\r\n\r\n",
            b"0123456789",
        ),
        (UNTIL_CLOSE + b"0123456789", b"abcd012345"),
    ],
)
async def test_long_body_is_cut_and_its_connection_closed(raw: bytes, body: bytes) -> None:
    client = HttpClient(answer_limit_bytes=10)
    async with serve(answer_once_and_watch(raw)) as server:
        answer = await post(client, server.url())
        assert (answer.body, answer.body_truncated) == (body, True)
        await server.peers[0].see_client_close()
    await client.close()


async def test_body_of_exactly_the_limit_is_whole() -> None:
    client = HttpClient(answer_limit_bytes=2)
    async with serve(answer_each_with(OK)) as server:
        for _ in range(2):
            assert await post(client, server.url()) == HttpAnswer(200, None, b"ok", False)
        assert len(server.peers) == 1
    await client.close()


async def test_large_body_in_tiny_chunks_is_read(client: HttpClient) -> None:
    body = b"x" * 30_000
    chunks = b"".join(b"1\r\nx\r\n" for _ in body)
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    async with serve(answer_each_with(raw)) as server:
        assert await post(client, server.url()) == HttpAnswer(200, None, body, False)


async def test_retry_after_is_passed_on(client: HttpClient) -> None:
    instant = "Fri, 31 Dec 2027 23:59:59 GMT"
    raw = f"HTTP/1.1 429 Slow\r\nrEtRy-aFtEr: {instant}\r\nContent-Length: 0\r\n\r\n".encode()
    async with serve(answer_each_with(raw)) as server:
        answer = await post(client, server.url())
        assert (answer.status, answer.retry_after) == (429, instant)


async def test_retry_after_is_not_carried_over_to_the_next_answer(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(b"HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
        await peer.read_request()
        peer.send(OK)

    async with serve(behave) as server:
        assert (await post(client, server.url())).retry_after == "5"
        assert (await post(client, server.url())).retry_after is None


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x16\x03\x01\x00\xff binary",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 11_000 + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 2_000_000,
    ],
    ids=lambda raw: repr(raw[:40]),
)
async def test_nonsense_is_not_an_answer(client: HttpClient, raw: bytes) -> None:
    async with serve(answer_once_and_watch(raw)) as server:
        with pytest.raises(InvalidAnswer) as caught:
            await post(client, server.url())
        assert str(caught.value) == "not a valid HTTP answer"
        await server.peers[0].see_client_close()
        assert len(server.peers) == 1


async def test_head_of_almost_the_limit_is_read(client: HttpClient) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nX: "
    raw = head + b"x" * (65_536 - 4 - len(head)) + b"\r\n\r\n" + b"y" * 100_000
    async with serve(answer_each_with(raw)) as server:
        answer = await post(client, server.url())
        assert (answer.body, answer.body_truncated) == (b"y" * 65_536, True)


async def test_server_that_speaks_first_is_rejected(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        peer.send(b"220 mail.example ESMTP\r\n")
        await peer.wait_until_client_closes()

    async with serve(behave) as server:
        with pytest.raises(DeliveryFailure, match=r"^not a valid HTTP answer$"):
            await post(client, server.url())


@pytest.mark.parametrize(
    "raw",
    [
        b"H",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
async def test_incomplete_answer_is_a_failure(client: HttpClient, raw: bytes) -> None:
    async with serve(answer_once_and_close(raw)) as server:
        with pytest.raises(
            DeliveryFailure, match=r"^connection closed in the middle of the answer$"
        ):
            await post(client, server.url())
        assert len(server.peers) == 1


async def test_reset_does_not_complete_an_answer_that_ends_with_its_connection(
    client: HttpClient,
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(UNTIL_CLOSE)
        peer.reset()

    async with serve(behave) as server:
        with pytest.raises(DeliveryFailure, match=r"^connection reset$"):
            await post(client, server.url())
