"""Connections are reused only while that is safe."""

import asyncio
import socket
import ssl
import threading

import pytest

from duetime.delivery.http_client import (
    ConnectionLost,
    DeliveryFailure,
    HttpClient,
    StaleConnection,
    parse_target,
)
from duetime.event_loop import next_turn
from tests.integration.delivery.http_client.servers import (
    OK,
    Behaviour,
    Peer,
    answer_each_with,
    answer_once_and_watch,
    close_on_second_requests,
    post,
    serve,
)


def answer_once_then(end: str) -> Behaviour:
    """Answer the first request of a connection, and end the connection on the second."""

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await peer.read_request()
        peer.reset() if end == "reset" else peer.close()

    return behave


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_stale_connection_is_reported_and_replaced(client: HttpClient, end: str) -> None:
    async with serve(answer_once_then(end)) as server:
        assert (await post(client, server.url(), b"first")).status == 200
        with pytest.raises(StaleConnection):
            await post(client, server.url(), b"second")
        assert (await post(client, server.url(), b"second")).status == 200
        seen = [[request.body for request in peer.requests] for peer in server.peers]
        assert seen == [[b"first", b"second"], [b"second"]]


@pytest.mark.parametrize(
    ("end", "message"),
    [("close", "connection closed before an answer"), ("reset", "connection reset")],
)
async def test_late_loss_of_a_reused_connection_is_a_failure(
    ssl_context: ssl.SSLContext, end: str, message: str
) -> None:
    client = HttpClient(ssl_context=ssl_context, stale_seconds=0.0)
    async with serve(answer_once_then(end)) as server:
        await post(client, server.url())
        with pytest.raises(ConnectionLost) as caught:
            await post(client, server.url())
        assert (type(caught.value), str(caught.value)) == (ConnectionLost, message)
        assert [len(peer.requests) for peer in server.peers] == [2]
    await client.close()


async def test_pause_does_not_make_a_stale_connection_a_failure(
    ssl_context: ssl.SSLContext,
) -> None:
    closed = threading.Event()

    def answer_once(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.send(OK)
            connection.recv(65_536)
        closed.set()

    client = HttpClient(ssl_context=ssl_context, stale_seconds=0.6)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_once, args=[listener])
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert (await post(client, url)).status == 200
        request = asyncio.create_task(post(client, url))
        await next_turn()
        # The loop stands still.
        closed.wait()
        threading.Event().wait(0.9)
        with pytest.raises(StaleConnection):
            await request
        server.join()
    await client.close()


@pytest.mark.parametrize(
    ("end", "message"),
    [("close", "connection closed before an answer"), ("reset", "connection reset")],
)
async def test_second_loss_is_not_a_stale_connection(
    client: HttpClient, end: str, message: str
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        if peer.number == 0:
            peer.send(OK)
            await peer.read_request()
        peer.reset() if end == "reset" else peer.close()

    async with serve(behave) as server:
        assert (await post(client, server.url())).status == 200
        with pytest.raises(StaleConnection):
            await post(client, server.url())
        with pytest.raises(DeliveryFailure) as caught:
            await post(client, server.url())
        assert str(caught.value) == message
        assert type(caught.value) is ConnectionLost
        assert [len(peer.requests) for peer in server.peers] == [2, 1]


async def test_stale_connection_discredits_the_other_idle_ones(
    client: HttpClient,
) -> None:
    async with serve(close_on_second_requests()) as server:
        await asyncio.gather(post(client, server.url()), post(client, server.url()))
        with pytest.raises(StaleConnection):
            await post(client, server.url(), b"third")
        assert (await post(client, server.url(), b"third")).status == 200
        assert sorted(len(peer.requests) for peer in server.peers) == [1, 1, 2]
        assert server.peers[2].requests[0].body == b"third"


@pytest.mark.parametrize(
    ("end", "message"),
    [("close", "connection closed before an answer"), ("reset", "connection reset")],
)
async def test_request_on_a_new_connection_is_never_repeated(
    client: HttpClient, end: str, message: str
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.reset() if end == "reset" else peer.close()

    async with serve(behave) as server:
        with pytest.raises(DeliveryFailure) as caught:
            await post(client, server.url())
        assert str(caught.value) == message
        assert type(caught.value) is ConnectionLost
        assert [len(peer.requests) for peer in server.peers] == [1]


async def test_request_is_not_repeated_once_the_answer_has_begun(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await peer.read_request()
        peer.send(b"H")
        peer.close()

    async with serve(behave) as server:
        await post(client, server.url())
        with pytest.raises(
            DeliveryFailure, match=r"^connection closed in the middle of the answer$"
        ):
            await post(client, server.url())
        assert len(server.peers) == 1


async def test_peer_that_closes_after_every_answer_is_recognized(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        peer.close()

    async with serve(behave) as server:
        stale = 0
        for _ in range(20):
            try:
                assert (await post(client, server.url())).status == 200
            except StaleConnection:
                stale += 1
        assert stale <= 1


async def test_request_on_a_new_connection_leaves_idle_ones_alone(client: HttpClient) -> None:
    async with serve(answer_each_with(OK)) as server:
        await post(client, server.url())
        await client.post(parse_target(server.url()), b"", b"{}", 5.0, on_new_connection=True)
        assert [len(peer.requests) for peer in server.peers] == [1, 1]


@pytest.mark.parametrize(
    "surplus",
    [b"x", b"HTTP/1.1 20", b"HTTP/1.1 500 Poison\r\nContent-Length: 0\r\n\r\n", b"\x00\xff"],
)
async def test_surplus_bytes_with_the_answer_end_the_connection(
    client: HttpClient, surplus: bytes
) -> None:
    async with serve(answer_once_and_watch(OK + surplus)) as server:
        for expected in (1, 2):
            assert (await post(client, server.url())).body == b"ok"
            await server.peers[-1].see_client_close()
            assert len(server.peers) == expected


async def test_bytes_on_an_idle_connection_end_it(client: HttpClient) -> None:
    speak = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await speak.wait()
        peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await peer.wait_until_client_closes()

    async with serve(behave) as server:
        assert (await post(client, server.url())).status == 200
        speak.set()
        await server.peers[0].see_client_close()
        speak.clear()
        assert (await post(client, server.url())).status == 200
        assert len(server.peers) == 2


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_forbidden_body_does_not_poison_the_next_answer(
    client: HttpClient, status: bytes
) -> None:
    raw = b"HTTP/1.1 %b\r\nContent-Length: 5\r\n\r\n" % status
    async with serve(answer_once_and_watch(raw)) as server:
        for expected in (1, 2):
            answer = await post(client, server.url())
            assert (answer.status, answer.body) == (int(status[:3]), b"")
            await server.peers[-1].see_client_close()
            assert len(server.peers) == expected


async def test_connection_used_last_is_used_first(client: HttpClient) -> None:
    turns = [asyncio.Event(), asyncio.Event()]
    both_there = asyncio.Barrier(3)

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        await both_there.wait()
        await turns[peer.number].wait()
        while True:
            peer.send(OK)
            await peer.read_request()

    async with serve(behave) as server:
        posts = [asyncio.create_task(post(client, server.url())) for _ in range(2)]
        await both_there.wait()
        turns[1].set()
        await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
        turns[0].set()
        await asyncio.gather(*posts)
        for _ in range(3):
            await post(client, server.url())
        assert [len(peer.requests) for peer in server.peers] == [4, 1]


async def test_origins_do_not_share_connections(client: HttpClient) -> None:
    async with serve(answer_each_with(OK)) as one, serve(answer_each_with(OK)) as other:
        for _ in range(2):
            await post(client, one.url())
            await post(client, other.url())
        assert [len(peer.requests) for peer in one.peers] == [2]
        assert [len(peer.requests) for peer in other.peers] == [2]


@pytest.mark.exclusive
async def test_idle_connection_is_closed_after_its_time() -> None:
    client = HttpClient(max_idle_seconds=0.05)
    loop = asyncio.get_running_loop()
    async with serve(answer_once_and_watch(OK)) as server:
        await post(client, server.url())
        began_at = loop.time()
        await server.peers[0].see_client_close()
        assert 0.04 <= loop.time() - began_at < 2
    await client.close()


async def test_busy_connection_outlives_the_idle_time() -> None:
    client = HttpClient(max_idle_seconds=0.5)
    answer_now = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await peer.read_request()
        await answer_now.wait()
        peer.send(OK)

    async with serve(behave) as server, serve(answer_once_and_watch(OK)) as other:
        await post(client, server.url())
        slow = asyncio.create_task(post(client, server.url()))
        await post(client, other.url())
        # The other connection is newer and has expired, so the busy one would have expired, too.
        await other.peers[0].see_client_close()
        answer_now.set()
        assert (await slow).status == 200
        assert len(server.peers) == 1
    await client.close()


async def test_keep_alive_header_of_one_second_leaves_no_time(client: HttpClient) -> None:
    raw = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1, max=9\r\nContent-Length: 0\r\n\r\n"
    async with serve(answer_once_and_watch(raw)) as server:
        await post(client, server.url())
        await server.peers[0].see_client_close()
        assert len(server.peers) == 1


@pytest.mark.exclusive
async def test_keep_alive_header_shortens_the_idle_time_of_its_connection_only() -> None:
    client = HttpClient(max_idle_seconds=30)
    loop = asyncio.get_running_loop()
    raw = b"HTTP/1.1 200 OK\r\nKeep-Alive: max=9, timeout=2\r\nContent-Length: 0\r\n\r\n"
    async with (
        serve(answer_once_and_watch(OK)) as patient,
        serve(answer_once_and_watch(raw)) as hasty,
    ):
        await post(client, patient.url())
        await post(client, hasty.url())
        began_at = loop.time()
        await hasty.peers[0].see_client_close()
        assert loop.time() - began_at >= 0.9
        assert not patient.peers[0].client_closed.is_set()
    await client.close()


@pytest.mark.parametrize("value", [b"timeout=60", b"nonsense", b"timeout="])
async def test_keep_alive_header_does_not_prevent_reuse(client: HttpClient, value: bytes) -> None:
    raw = b"HTTP/1.1 200 OK\r\nKeep-Alive: %b\r\nContent-Length: 0\r\n\r\n" % value
    async with serve(answer_each_with(raw)) as server:
        for _ in range(2):
            assert (await post(client, server.url())).status == 200
        assert len(server.peers) == 1
