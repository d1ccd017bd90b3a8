"""One peer that takes more than its part of the places."""

import asyncio
from typing import Any

from tests.integration.server.connections.clients import (
    IMPORT,
    Clients,
    Streams,
    ask,
    is_ended,
    limits,
    received,
    serving,
    wait_for_connections,
)
from tests.polling import poll

GREEDY, OTHER, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"
LIST = b"GET /timers HTTP/1.1\r\nHost: test\r\n\r\n"


async def use_places(clients: Clients, count: int, host: str) -> list[Streams]:
    """Connections with a request under way."""
    before = clients.server.connections
    used = [await clients.connect(host) for _ in range(count)]
    for _, writer in used:
        writer.write(IMPORT)
    await wait_for_connections(clients, before + count)

    async def silent() -> int:
        return sum(each.has_sent_no_request for each in clients.server.protocols)

    await poll(silent, lambda found: found == 0)
    return used


async def is_turned_away(clients: Clients, host: str) -> bool:
    reader, writer = await clients.connect(host)
    writer.write(LIST)
    return (await received(reader)).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")


def protocol_of(clients: Clients, host: str) -> Any:
    (protocol,) = (each for each in clients.server.protocols if each.peer == host)
    return protocol


async def test_a_peer_that_uses_all_places_keeps_nobody_else_out() -> None:
    async with serving(limits(places=8)) as clients:
        greedy = await use_places(clients, 8, GREEDY)
        for host in (OTHER, THIRD, OTHER):
            assert await ask(await clients.connect(host)) == b"HTTP/1.1 200 OK"
        assert await is_turned_away(clients, GREEDY)
        live = [each for each in greedy if not await is_ended(each)]
        assert len(live) >= 5
        for streams in live:
            assert await ask(streams, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_peer_that_asks_on_every_connection_keeps_nobody_else_out() -> None:
    async with serving(limits(places=4)) as clients:
        greedy = [await clients.connect(GREEDY) for _ in range(4)]
        for streams in greedy:
            assert await ask(streams) == b"HTTP/1.1 200 OK"
        other = await clients.connect(OTHER)
        assert await ask(other) == b"HTTP/1.1 200 OK"
        assert await is_turned_away(clients, GREEDY)
        assert await ask(other) == b"HTTP/1.1 200 OK"


async def test_requests_under_way_give_way_after_connections_without_one() -> None:
    async with serving(limits(places=4)) as clients:
        busy = await use_places(clients, 2, GREEDY)
        answered = [await clients.connect(GREEDY) for _ in range(2)]
        for streams in answered:
            assert await ask(streams) == b"HTTP/1.1 200 OK"
        other = await clients.connect(OTHER)
        assert await ask(other) == b"HTTP/1.1 200 OK"
        for streams in busy:
            assert await ask(streams, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"
        assert await ask(other) == b"HTTP/1.1 200 OK"


async def test_connections_in_use_stay_while_no_peer_has_more_than_half() -> None:
    async with serving(limits(places=4)) as clients:
        used = [*await use_places(clients, 2, GREEDY), *await use_places(clients, 2, OTHER)]
        assert await is_turned_away(clients, THIRD)
        for streams in used:
            assert await ask(streams, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_two_large_peers_do_not_take_each_others_connections_in_use() -> None:
    async with serving(limits(places=8)) as clients:
        used = [*await use_places(clients, 5, GREEDY), *await use_places(clients, 3, OTHER)]
        for host in (GREEDY, OTHER):
            assert await is_turned_away(clients, host)
        for streams in used:
            assert await ask(streams, b"0\r\n\r\n") == b"HTTP/1.1 200 OK"


async def test_a_greedy_peer_does_not_take_the_idle_connections_of_others() -> None:
    async with serving(limits(places=4)) as clients:
        other = await clients.connect(OTHER)
        assert await ask(other) == b"HTTP/1.1 200 OK"
        await use_places(clients, 3, GREEDY)
        idle, loop = protocol_of(clients, OTHER), asyncio.get_running_loop()

        async def is_unused() -> bool:
            return bool(idle.is_unused(loop.time()))

        await poll(is_unused, bool)
        for _ in range(3):
            assert await is_turned_away(clients, GREEDY)
        assert await ask(other) == b"HTTP/1.1 200 OK"


async def test_silent_connections_of_the_greediest_peer_give_way_first() -> None:
    async with serving(limits(places=6)) as clients:
        early = await clients.connect(OTHER)
        silent = [await clients.connect(GREEDY) for _ in range(5)]
        await wait_for_connections(clients, 6)
        newcomer = await clients.connect(THIRD)
        assert await ask(newcomer) == b"HTTP/1.1 200 OK"
        assert await received(silent[0][0]) == b""
        assert await ask(early) == b"HTTP/1.1 200 OK"
