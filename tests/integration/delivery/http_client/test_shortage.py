"""Descriptors and ports are few: connections are given up for others, and leave no port in use."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.delivery.http_client import (
    Address,
    HttpClient,
    LacksResource,
    NotConnected,
    StaleConnection,
)
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
from tests.polling import poll

CLOSING = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)


@pytest.fixture
async def small_client() -> AsyncIterator[HttpClient]:
    """A client of two connections."""
    client = HttpClient(max_idle_seconds=60, max_connections=2)
    yield client
    await client.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_resource_that_is_lacking_is_nobodys_failure(
    client: HttpClient, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError(number, "none left")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", fail, raising=True)
    with pytest.raises(LacksResource):
        await post(client, "http://127.0.0.1:9/hook")


async def test_no_ports_is_a_shortage_and_no_address_is_a_failure(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", fail, raising=True)
    with pytest.raises(LacksResource, match="local ports"):
        await post(client, "http://127.0.0.1:9/hook")
    monkeypatch.setattr("duetime.network_failures.has_source_address", lambda *_: False)
    with pytest.raises(NotConnected):
        await post(client, "http://127.0.0.1:9/hook")


async def test_a_resolver_without_descriptors_is_a_shortage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(host: str, port: int, deadline: float) -> list[Address]:
        raise OSError(errno.EMFILE, "Too many open files")

    client = HttpClient(resolve=resolve)
    with pytest.raises(LacksResource):
        await post(client, "http://endpoint.example/hook")
    await client.close()


async def test_idle_connections_are_closed_for_new_ones(small_client: HttpClient) -> None:
    async with (
        serve(answer_each_with(OK)) as first,
        serve(answer_each_with(OK)) as second,
        serve(answer_each_with(OK)) as third,
    ):
        for server in (first, second, third):
            assert (await post(small_client, server.url())).status == 200
        for server in (second, third):
            assert (await post(small_client, server.url())).status == 200
        assert [len(server.peers) for server in (first, second, third)] == [1, 1, 1]
        assert (await post(small_client, first.url())).status == 200
        assert len(first.peers) == 2, "the one unused for longest was closed"


def answer_and_stay(closed_by: list[str]) -> Behaviour:
    """Announce the end of the connection, and leave it to the client."""

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(CLOSING)
        try:
            await peer.read_head()
        except asyncio.IncompleteReadError:
            closed_by.append("end")
        except ConnectionResetError:
            closed_by.append("reset")

    return behave


async def test_a_peer_that_announces_the_end_closes_first(client: HttpClient) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(CLOSING)
        peer.send_end()
        await peer.wait_until_client_closes()

    async with serve(behave) as server:
        kept = KeptPorts(server.port)
        assert (await post(client, server.url())).status == 200
        await server.peers[0].see_client_close()
        assert kept.new() == set()


async def test_a_peer_that_does_not_close_is_reset(client: HttpClient) -> None:
    closed_by: list[str] = []
    async with serve(answer_and_stay(closed_by)) as server:
        kept = KeptPorts(server.port)
        assert (await post(client, server.url())).status == 200

        async def ends() -> list[str]:
            return closed_by

        assert await poll(ends, bool) == ["reset"]
        assert kept.new() == set()


SHORT_LIVED = OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=1\r\n\r\n", 1)


async def test_a_peer_that_hardly_keeps_connections_leaves_no_port_in_use(
    client: HttpClient,
) -> None:
    async with serve(answer_once_and_watch(SHORT_LIVED)) as server:
        kept = KeptPorts(server.port)
        for _ in range(3):
            assert (await post(client, server.url())).status == 200
        for peer in server.peers:
            await peer.see_client_close()
            await peer.drop()
        assert len(server.peers) == 3
        assert kept.new() == set()


async def test_a_peer_that_closes_without_notice_leaves_no_port_in_use(
    client: HttpClient,
) -> None:
    async with serve(close_on_second_requests()) as server:
        kept = KeptPorts(server.port)
        await asyncio.gather(post(client, server.url()), post(client, server.url()))
        with pytest.raises(StaleConnection):
            await post(client, server.url())
        assert (await post(client, server.url())).status == 200
        unused, after_the_loss = [peer for peer in server.peers if len(peer.requests) == 1]
        for peer in (unused, after_the_loss):
            await peer.see_client_close()
            await peer.drop()
        assert kept.new() == set()


async def test_a_departing_connection_makes_room_for_a_new_one(small_client: HttpClient) -> None:
    closed_by: list[str] = []
    async with serve(answer_and_stay(closed_by)) as server:
        for _ in range(4):
            assert (await post(small_client, server.url())).status == 200
        assert len(closed_by) >= 1


async def test_closing_the_client_ends_departing_connections(client: HttpClient) -> None:
    closed_by: list[str] = []
    async with serve(answer_and_stay(closed_by)) as server:
        assert (await post(client, server.url())).status == 200
        await client.close()
        assert len(server.peers) == 1


class KeptPorts:
    """Local ports that connections to a port occupy after their end (TIME_WAIT), from now on.

    The port may have been another server's a moment ago.
    """

    def __init__(self, port: int) -> None:
        self._remote = f"{socket.inet_aton('127.0.0.1')[::-1].hex().upper()}:{port:04X}"
        self._before = self._now()

    def new(self) -> set[str]:
        return self._now() - self._before

    def _now(self) -> set[str]:
        time_wait = "06"
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {line[1] for line in lines if line[2] == self._remote and line[3] == time_wait}
