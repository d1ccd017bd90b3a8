"""Hosts with several silent addresses: they are tried within the descriptors that there are."""

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duetime.delivery.http_client import HttpAnswer, HttpClient, LacksResource, TimedOut
from duetime.delivery.http_client.address_race import HEAD_START_SECONDS
from tests.integration.delivery.http_client.servers import (
    OK,
    Peer,
    answer_each_with,
    fill_backlog,
    post,
    resolving_to,
    serve,
)
from tests.polling import poll

SILENT = [f"127.0.0.{number}" for number in range(3, 11)]


@contextmanager
def silent_addresses(port: int = 0) -> Iterator[int]:
    """Let connecting to all of `SILENT` hang, at the port that is returned."""
    sockets: list[socket.socket] = []
    for address in SILENT:
        sockets.append(socket.socket())
        sockets += fill_backlog(sockets[-1], address, port)
        port = port or int(sockets[0].getsockname()[1])
    try:
        yield port
    finally:
        for each in sockets:
            each.close()


class Tries:
    """Counts the connections that are being opened to a port, beside those that fill backlogs."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._before = 0
        self._before = self.count()

    def count(self) -> int:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        syn_sent = [line for line in lines if line[3] == "02"]
        towards = [line for line in syn_sent if line[2].endswith(f":{self._port:04X}")]
        return len(towards) - self._before

    async def wait_for(self, count: int) -> None:
        async def look() -> int:
            return self.count()

        await poll(look, until=lambda found: found == count)


@contextmanager
def no_descriptors() -> Iterator[None]:
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def start_post(client: HttpClient, url: str, timeout_seconds: float) -> asyncio.Task[HttpAnswer]:
    return asyncio.create_task(post(client, url, timeout_seconds=timeout_seconds))


@pytest.mark.exclusive
async def test_tries_stay_within_the_connections_of_the_client() -> None:
    client = HttpClient(resolve=resolving_to(*SILENT), max_connections=6)
    with silent_addresses() as port:
        tries, most = Tries(port), 0
        requests = [start_post(client, f"http://silent.test:{port}/", 2.5) for _ in range(4)]
        while any(not request.done() for request in requests):
            await asyncio.wait(requests, timeout=0.05)
            most = max(most, tries.count())
        assert most == 6
        assert {type(request.exception()) for request in requests} == {TimedOut}
        assert tries.count() == 0
    await client.close()


async def test_a_try_beside_others_makes_room_for_another_request() -> None:
    answer_now = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        await answer_now.wait()
        peer.send(OK)

    client = HttpClient(
        resolve=resolving_to(*SILENT, by_name={"answers.test": ["127.0.0.1"]}), max_connections=4
    )
    async with serve(behave) as server:
        with silent_addresses(server.port) as port:
            tries = Tries(port)
            silent = start_post(client, f"http://silent.test:{port}/", 30)
            await tries.wait_for(4)
            others = [start_post(client, server.url(host="answers.test"), 30) for _ in range(3)]
            await tries.wait_for(1)
            answer_now.set()
            assert {answer.status for answer in await asyncio.gather(*others)} == {200}
            # Idle connections make room in turn.
            await tries.wait_for(4)
            silent.cancel()
            await asyncio.wait([silent])
        await client.close()


async def test_without_room_addresses_have_equal_parts_of_the_time() -> None:
    client = HttpClient(resolve=resolving_to(*SILENT[:2], "127.0.0.1"), max_connections=1)
    async with serve(answer_each_with(OK)) as server:
        with silent_addresses(server.port):
            url = server.url(host="third.test")
            assert (await post(client, url, timeout_seconds=3)).status == 200
        await client.close()


async def test_an_address_that_lacks_a_descriptor_is_tried_again() -> None:
    client = HttpClient(resolve=resolving_to(SILENT[0], "127.0.0.1"))
    async with serve(answer_each_with(OK)) as server:
        with silent_addresses(server.port) as port:
            tries = Tries(port)
            request = start_post(client, server.url(host="second.test"), 30)
            await tries.wait_for(1)
            with no_descriptors():
                await asyncio.wait([request], timeout=2 * HEAD_START_SECONDS)
            assert (await request).status == 200
        await client.close()


async def test_an_address_that_was_not_tried_for_want_of_a_descriptor_is_a_shortage() -> None:
    client = HttpClient(resolve=resolving_to(SILENT[0], "127.0.0.1"))
    with silent_addresses() as port:
        tries = Tries(port)
        request = start_post(client, f"http://second.test:{port}/", 1)
        await tries.wait_for(1)
        with no_descriptors():
            await asyncio.wait([request])
        with pytest.raises(LacksResource, match="file descriptors"):
            await request
    await client.close()
