"""The bytes written to the server."""

import asyncio

import pytest

from duetime.delivery.http_client import HttpClient, parse_target
from tests.integration.delivery.http_client.servers import OK, Peer, answer_each_with, post, serve


async def test_request_is_sent_exactly_as_given(client: HttpClient) -> None:
    async with serve(answer_each_with(OK)) as server:
        target = parse_target(server.url("/a/é?b=c"))
        await client.post(target, b"Content-Type: application/json\r\nX-A: 1\r\n", b'{"n":1}', 5.0)
        [request] = server.peers[0].requests
        assert request.head == (
            b"POST /a/%%C3%%A9?b=c HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
            b"Content-Type: application/json\r\nX-A: 1\r\nContent-Length: 7\r\n\r\n" % server.port
        )
        assert request.body == b'{"n":1}'


@pytest.mark.parametrize("body", [None, b""])
async def test_no_body_is_a_length_of_zero(client: HttpClient, body: bytes | None) -> None:
    async with serve(answer_each_with(OK)) as server:
        await post(client, server.url("/"), body)
        [request] = server.peers[0].requests
        assert request.head == (
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 0\r\n\r\n" % server.port
        )


async def test_credentials_of_the_url_are_sent_unless_a_header_overrides_them(
    client: HttpClient,
) -> None:
    async with serve(answer_each_with(OK)) as server:
        target = parse_target(server.url(host="user:secret@127.0.0.1"))
        await client.post(target, b"Proxy-Authorization: Basic eA==\r\n", None, 5.0)
        await client.post(target, b"X: y\r\nauthorization: Bearer token\r\n", None, 5.0)
        first, second = server.peers[0].requests
        assert b"\r\nAuthorization: Basic dXNlcjpzZWNyZXQ=\r\n" in first.head
        assert b"Basic" not in second.head
        assert b"\r\nauthorization: Bearer token\r\n" in second.head


async def test_large_body_arrives_whole(client: HttpClient) -> None:
    body = bytes(range(256)) * 4096
    async with serve(answer_each_with(OK)) as server:
        for _ in range(2):
            assert (await post(client, server.url(), body)).status == 200
        assert [request.body for request in server.peers[0].requests] == [body, body]


async def test_answer_may_come_before_the_request_is_fully_written(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_head()
        peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await may_read.wait()
        await peer.wait_until_client_closes()

    may_read = asyncio.Event()
    body = b"x" * 32_000_000  # More than the buffers of both sockets hold.
    async with serve(behave) as server:
        assert (await post(client, server.url(), body)).status == 413
        # The connection is in the middle of a request: it must not carry another.
        assert (await post(client, server.url(), b"{}")).status == 413
        assert len(server.peers) == 2
        may_read.set()
        await server.peers[0].see_client_close()


async def test_answer_that_ends_with_its_connection_may_come_early(
    client: HttpClient,
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_head()
        peer.send(b"HTTP/1.1 413 Too Large\r\n\r\nno")
        peer.send_end()
        await answered.wait()
        await peer.wait_until_client_closes()

    answered = asyncio.Event()
    async with serve(behave) as server:
        answer = await post(client, server.url(), b"x" * 32_000_000)
        assert (answer.status, answer.body) == (413, b"no")
        answered.set()
        await server.peers[0].see_client_close()


async def test_concurrent_requests_each_get_their_own_answer(client: HttpClient) -> None:
    async def echo(peer: Peer) -> None:
        while True:
            body = (await peer.read_request()).body
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with serve(echo) as server:
        for _ in range(3):
            bodies = [b"%d" % number for number in range(50)]
            answers = await asyncio.gather(*(post(client, server.url(), body) for body in bodies))
            assert [answer.body for answer in answers] == bodies
        assert len(server.peers) <= 50


async def test_ipv6_address(client: HttpClient) -> None:
    try:
        serving = serve(answer_each_with(OK), host="::1")
        server = await serving.__aenter__()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    try:
        assert (await post(client, server.url(host="[::1]"))).status == 200
        assert b"\r\nHost: [::1]:%d\r\n" % server.port in server.peers[0].requests[0].head
    finally:
        await serving.__aexit__(None, None, None)
