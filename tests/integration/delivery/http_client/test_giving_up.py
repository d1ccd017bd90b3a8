"""Timeouts, cancellation and closing: nothing hangs, and no half-used connection survives."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Sequence

import pytest
import trustme

from duetime.delivery.http_client import (
    Address,
    ClientClosed,
    DeliveryFailure,
    HttpClient,
    LacksResource,
    TimedOut,
)
from tests.integration.delivery.http_client.servers import (
    OK,
    Behaviour,
    Peer,
    answer_each_with,
    fill_backlog,
    let_the_loop_turn,
    post,
    serve,
)
from tests.pausing_loop import PausingSelector


def stall_after(part: bytes) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(part)
        await peer.wait_until_client_closes()

    return behave


STALLS = {
    "before the head": b"",
    "in the head": b"HTTP/1.1 200 OK\r\nContent-",
    "in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
    "in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "before the close": b"HTTP/1.1 200 OK\r\n\r\nabc",
}


@pytest.mark.parametrize("part", STALLS.values(), ids=STALLS)
async def test_timeout_covers_the_whole_answer(client: HttpClient, part: bytes) -> None:
    async with serve(stall_after(part)) as server:
        with pytest.raises(TimedOut) as caught:
            await post(client, server.url(), timeout_seconds=0.5)
        assert str(caught.value) == "timed out after 0.5 s"
        await server.peers[0].see_client_close()
        assert len(server.peers) == 1


async def test_answer_that_trickles_does_not_extend_the_timeout(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not peer.client_closed.is_set():
            await peer.send_bytes_one_by_one(b"x")

    async with serve(behave) as server:
        with pytest.raises(TimedOut):
            await post(client, server.url(), timeout_seconds=0.1)


@pytest.mark.parametrize(("first_seconds", "second_seconds"), [(5.0, 0.05), (1.5, 0.5), (0.5, 1.5)])
async def test_each_request_on_a_connection_has_its_own_timeout(
    client: HttpClient, first_seconds: float, second_seconds: float
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await peer.wait_until_client_closes()

    loop = asyncio.get_running_loop()
    async with serve(behave) as server:
        await post(client, server.url(), timeout_seconds=first_seconds)
        began_at = loop.time()
        with pytest.raises(TimedOut, match=rf"^timed out after {second_seconds} s$"):
            await post(client, server.url(), timeout_seconds=second_seconds)
        assert second_seconds - 0.01 <= loop.time() - began_at < second_seconds + 1
        assert len(server.peers) == 1


def test_answer_that_waits_in_the_socket_counts_after_the_timeout() -> None:
    def answer_two_requests(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            for _ in range(2):
                connection.recv(65_536)
                connection.send(OK)
            while connection.recv(65_536):
                pass

    async def send_three_requests(url: str) -> None:
        client = HttpClient()
        await post(client, url, None)
        second = asyncio.create_task(post(client, url, None, timeout_seconds=0.1))
        # Right after the request is written.
        asyncio.get_running_loop().call_soon(selector.pause, 0.15)
        assert (await second).status == 200
        # The connection is clean, so the third request waits on it for its own timeout.
        with pytest.raises(TimedOut):
            await post(client, url, None, timeout_seconds=0.1)
        await client.close()

    selector = PausingSelector()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # In a thread of its own, because the loop stands still while the answer arrives.
        server = threading.Thread(target=answer_two_requests, args=[listener])
        server.start()
        with asyncio.Runner(loop_factory=selector.new_loop) as runner:
            runner.run(send_three_requests(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
        server.join()


ANSWERS = {
    "with its length": OK,
    "to its end": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("raw", ANSWERS.values(), ids=ANSWERS)
async def test_answer_that_came_during_a_pause_is_read_to_its_end(
    authority: trustme.CA, raw: bytes, scheme: str
) -> None:
    requested, paused, answered = threading.Event(), threading.Event(), threading.Event()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server_context)
    client_context = ssl.create_default_context()
    authority.configure_trust(client_context)

    def answer_during_the_pause(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        if scheme == "https":
            connection = server_context.wrap_socket(connection, server_side=True)
        with connection:
            connection.recv(65_536)
            requested.set()
            paused.wait()
            connection.sendall(raw)
        answered.set()

    client = HttpClient(ssl_context=client_context)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_during_the_pause, args=[listener])
        server.start()
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        request = asyncio.create_task(post(client, url, timeout_seconds=0.5))
        await asyncio.to_thread(requested.wait)
        # The loop stands still until the answer has arrived and the timeout is over.
        paused.set()
        answered.wait()
        threading.Event().wait(0.55)
        assert (await request).status == 200
        server.join()
    await client.close()


async def test_timeout_while_the_request_is_being_written(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_head()
        await timed_out.wait()
        await peer.wait_until_client_closes()

    timed_out = asyncio.Event()
    async with serve(behave) as server:
        with pytest.raises(TimedOut):
            await post(client, server.url(), b"x" * 16_000_000, timeout_seconds=0.5)
        timed_out.set()
        await server.peers[0].see_client_close()


async def test_timed_out_request_is_not_sent_again_on_a_reused_connection(
    client: HttpClient,
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await peer.read_request()
        await peer.wait_until_client_closes()

    async with serve(behave) as server:
        await post(client, server.url())
        with pytest.raises(TimedOut):
            await post(client, server.url(), timeout_seconds=0.5)
        await server.peers[0].see_client_close()
        assert [len(peer.requests) for peer in server.peers] == [2]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(30, "30 s"), (30.0, "30 s"), (0.5, "0.5 s"), (1.25, "1.25 s"), (100, "100 s")],
)
def test_seconds_are_written_without_trailing_zeros(seconds: float, text: str) -> None:
    assert str(TimedOut(seconds)) == f"timed out after {text}"


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("part", STALLS.values(), ids=STALLS)
async def test_cancelled_request_aborts_its_connection(
    client: HttpClient, part: bytes, reused: bool
) -> None:
    arrived = asyncio.Event()

    async def behave(peer: Peer) -> None:
        if peer.number > 0 or reused:
            await peer.read_request()
            peer.send(OK)
        await peer.read_request()
        peer.send(part)
        arrived.set()
        await peer.wait_until_client_closes()

    async with serve(behave) as server:
        if reused:
            await post(client, server.url())
        request = asyncio.create_task(post(client, server.url()))
        await arrived.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await server.peers[0].see_client_close()
        assert (await post(client, server.url())).body == b"ok"
        assert len(server.peers) == 2


@pytest.mark.parametrize("when", ["before the answer is read", "while the answer is read"])
async def test_answer_that_meets_a_cancellation_is_not_given_to_the_next_request(
    client: HttpClient, when: str
) -> None:
    loop = asyncio.get_running_loop()
    unexpected: list[object] = []
    loop.set_exception_handler(lambda _, context: unexpected.append(context))
    cancelled = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        if peer.number == 0:
            # The answer is in the socket of the client when its task is cancelled.
            peer.send(b"HTTP/1.1 500 Old\r\nContent-Length: 0\r\n\r\n")
            if when.startswith("before"):
                request.cancel()
            else:
                loop.call_soon(request.cancel)
            cancelled.set()
            await peer.read_request()
        peer.send(OK)

    async with serve(behave) as server:
        request = asyncio.create_task(post(client, server.url()))
        await cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await request
        # If the answer was read to its end by then, the connection may be reused.
        assert (await post(client, server.url())).status == 200
        assert not unexpected


async def test_pause_before_anything_was_sent_is_not_the_peers_timeout() -> None:
    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        threading.Event().wait(0.35)  # The loop stands still.
        await asyncio.Event().wait()
        return []

    client = HttpClient(resolve=resolve)
    with pytest.raises(LacksResource, match="processor time"):
        await post(client, "http://api.example.test/", timeout_seconds=0.05)
    await client.close()


async def test_request_is_not_sent_when_its_time_was_over_during_a_pause() -> None:
    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        threading.Event().wait(0.35)  # The loop stands still.
        return [(socket.AF_INET, "127.0.0.1")]

    client = HttpClient(resolve=resolve)
    async with serve(answer_each_with(OK)) as server:
        with pytest.raises(LacksResource, match="processor time"):
            await post(client, server.url(host="api.example.test"), timeout_seconds=0.05)
        await let_the_loop_turn()
        assert not any(peer.requests for peer in server.peers)
    await client.close()


async def test_pause_while_connecting_is_not_the_peers_timeout() -> None:
    with socket.socket() as listener:
        fillers = fill_backlog(listener)
        client = HttpClient()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        request = asyncio.create_task(post(client, url, timeout_seconds=0.05))
        asyncio.get_running_loop().call_later(0.02, threading.Event().wait, 0.25)
        with pytest.raises(LacksResource, match="processor time"):
            await request
        await client.close()
        for filler in fillers:
            filler.close()


async def test_cancellation_while_connecting() -> None:
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return []

    client = HttpClient(resolve=resolve)
    request = asyncio.create_task(post(client, "http://api.example.test/"))
    await asked.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert given_up.is_set()
    await client.close()


async def test_close_ends_busy_idle_and_opening_connections() -> None:
    asked, arrived = asyncio.Event(), asyncio.Event()

    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        if host == "unknown.example.test":
            asked.set()
            await asyncio.Event().wait()
        return [(2, "127.0.0.1")]

    async def behave(peer: Peer) -> None:
        if (await peer.read_request()).body == b"silent":
            arrived.set()
        else:
            peer.send(OK)
        await peer.wait_until_client_closes()

    client = HttpClient(resolve=resolve)
    async with serve(behave) as server:
        busy = asyncio.create_task(post(client, server.url(), b"silent"))
        await arrived.wait()
        await post(client, server.url(), b"answered")
        opening = asyncio.create_task(post(client, "http://unknown.example.test/"))
        await asked.wait()
        await client.close()
        async with asyncio.timeout(2):
            for request in (busy, opening):
                with pytest.raises(ClientClosed, match=r"^the HTTP client was closed$"):
                    await request
        for peer in server.peers:
            await peer.see_client_close()
        assert len(server.peers) == 2


async def test_closed_client_sends_nothing() -> None:
    client = HttpClient()
    async with serve(answer_each_with(OK)) as server:
        await post(client, server.url())
        await client.close()
        await client.close()
        with pytest.raises(DeliveryFailure, match=r"^the HTTP client was closed$"):
            await post(client, server.url())
        assert [len(peer.requests) for peer in server.peers] == [1]
