"""Resolving and connecting: only resolved addresses, in order, and failures in plain words."""

import asyncio
import errno
import os
import socket
from collections.abc import Sequence

import pytest

from duetime.delivery.http_client import Address, DeliveryFailure, HttpClient, Resolve
from tests.integration.delivery.http_client.servers import (
    OK,
    answer_each_with,
    fill_backlog,
    let_the_loop_turn,
    post,
    resolving_to,
    serve,
)
from tests.refusing_port import refusing_port


def failing_with(error: Exception) -> Resolve:
    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        raise error

    return resolve


async def failure_text(client: HttpClient, url: str) -> str:
    with pytest.raises(DeliveryFailure) as caught:
        await post(client, url)
    await client.close()
    assert caught.value.__cause__ is None
    return str(caught.value)


async def test_connection_refused() -> None:
    with refusing_port() as port:
        text = await failure_text(HttpClient(), f"http://127.0.0.1:{port}/")
    assert text == "connection refused"


async def test_no_route_to_host() -> None:
    # TCP to a multicast address is unreachable everywhere.
    client = HttpClient(resolve=resolving_to("224.0.0.1"))
    assert await failure_text(client, "http://api.example.test/") == "no route to host"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "host name not found: api.example.test",
        ),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "could not connect: temporary failure in name resolution",
        ),
        (OSError(errno.EACCES, "whatever"), "could not connect: permission denied"),
        (OSError("resolver is asleep"), "could not connect: resolver is asleep"),
        (UnicodeError("label too long"), "host name not found: api.example.test"),
        (
            DeliveryFailure("address not allowed: 10.0.0.1"),
            "address not allowed: 10.0.0.1",
        ),
    ],
)
async def test_resolver_failures(error: Exception, message: str) -> None:
    client = HttpClient(resolve=failing_with(error))
    assert await failure_text(client, "http://api.example.test/") == message


async def test_name_without_addresses_is_not_found() -> None:
    client = HttpClient(resolve=resolving_to())
    text = await failure_text(client, "http://api.example.test/")
    assert text == "host name not found: api.example.test"


async def test_system_resolver_finds_localhost(client: HttpClient) -> None:
    async with serve(answer_each_with(OK)) as server:
        assert (await post(client, server.url(host="localhost"))).status == 200


async def test_unknown_name_is_reported_by_the_system_resolver() -> None:
    text = await failure_text(HttpClient(), "http://no-such-host.invalid/")
    # Without a name server at hand the system says "try again" instead.
    assert text == "host name not found: no-such-host.invalid" or text.startswith(
        "could not connect: temporary failure"
    )


async def test_resolver_decides_which_address_is_connected_to() -> None:
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        asked.append((host, port))
        return [(socket.AF_INET, "127.0.0.1")]

    client = HttpClient(resolve=resolve)
    async with serve(answer_each_with(OK)) as server:
        for host in ("api.example.test", "192.0.2.1"):
            assert (await post(client, server.url(host=host))).status == 200
            assert f"Host: {host}:{server.port}".encode() in server.peers[-1].requests[0].head
        assert asked == [("api.example.test", server.port), ("192.0.2.1", server.port)]
    await client.close()


async def test_addresses_are_tried_in_order() -> None:
    client = HttpClient(resolve=resolving_to("127.0.0.2", "127.0.0.1"))
    async with serve(answer_each_with(OK)) as server:
        assert (await post(client, server.url(host="api.example.test"))).status == 200
    await client.close()


async def test_failure_of_the_preferred_address_is_reported() -> None:
    client = HttpClient(resolve=resolving_to("127.0.0.1", "224.0.0.1"))
    with refusing_port() as port:
        text = await failure_text(client, f"http://api.example.test:{port}/")
    assert text == "connection refused"


@pytest.mark.exclusive
async def test_silent_address_times_out() -> None:
    with socket.socket() as listener:
        fillers = fill_backlog(listener)
        client = HttpClient(connect_timeout_seconds=0.05)
        text = await failure_text(client, f"http://127.0.0.1:{listener.getsockname()[1]}/")
        assert text == "could not connect: timed out after 0.05 s"
        for filler in fillers:
            filler.close()


async def test_silent_address_does_not_hide_the_next() -> None:
    with socket.socket() as listener:
        async with serve(answer_each_with(OK)) as server:
            fillers = fill_backlog(listener, "127.0.0.3", server.port)
            before = len(os.listdir("/dev/fd"))
            client = HttpClient(resolve=resolving_to("127.0.0.3", "127.0.0.1"))
            url = server.url(host="api.example.test")
            assert (await post(client, url, timeout_seconds=8)).status == 200
            await server.peers[0].drop()
            await client.close()
            await let_the_loop_turn()
            assert len(os.listdir("/dev/fd")) == before
            for filler in fillers:
                filler.close()


async def test_address_that_is_tried_later_may_win_before_the_first_fails() -> None:
    with socket.socket() as silent, socket.socket() as silent_too:
        async with serve(answer_each_with(OK)) as server:
            fillers = fill_backlog(silent, "127.0.0.3", server.port)
            fillers += fill_backlog(silent_too, "127.0.0.4", server.port)
            addresses = ("127.0.0.3", "127.0.0.2", "127.0.0.4", "127.0.0.1", "127.0.0.1")
            client = HttpClient(resolve=resolving_to(*addresses))
            url = server.url(host="api.example.test")
            assert (await post(client, url, timeout_seconds=8)).status == 200
            assert len(server.peers) == 1
            await client.close()
            for filler in fillers:
                filler.close()


@pytest.mark.exclusive
async def test_silent_addresses_time_out_together() -> None:
    with socket.socket() as silent, socket.socket() as silent_too:
        fillers = fill_backlog(silent, "127.0.0.3")
        port = silent.getsockname()[1]
        fillers += fill_backlog(silent_too, "127.0.0.4", port)
        client = HttpClient(
            connect_timeout_seconds=0.4, resolve=resolving_to("127.0.0.3", "127.0.0.4")
        )
        text = await failure_text(client, f"http://api.example.test:{port}/")
        assert text == "could not connect: timed out after 0.4 s"
        for filler in fillers:
            filler.close()


@pytest.mark.exclusive
async def test_timeout_while_connecting() -> None:
    with socket.socket() as listener:
        fillers = fill_backlog(listener)
        client = HttpClient()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(DeliveryFailure, match=r"^timed out after 0\.05 s$"):
            await post(client, url, timeout_seconds=0.05)
        await client.close()
        for filler in fillers:
            filler.close()


@pytest.mark.exclusive
async def test_timeout_while_resolving() -> None:
    given_up = asyncio.Event()

    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return []

    client = HttpClient(resolve=resolve)
    with pytest.raises(DeliveryFailure, match=r"^timed out after 0\.05 s$"):
        await post(client, "http://api.example.test/", timeout_seconds=0.05)
    assert given_up.is_set()
    await client.close()


async def test_failed_connections_leave_no_open_files() -> None:
    client = HttpClient()
    with refusing_port() as port:
        url = f"http://127.0.0.1:{port}/"
        with pytest.raises(DeliveryFailure):
            await post(client, url)
        before = len(os.listdir("/dev/fd"))
        for _ in range(20):
            with pytest.raises(DeliveryFailure):
                await post(client, url)
        assert len(os.listdir("/dev/fd")) == before
    await client.close()
