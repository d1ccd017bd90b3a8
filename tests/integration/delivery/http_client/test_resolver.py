"""Looking up names: shared, remembered, and never at the expense of other names."""

import asyncio
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from threading import Event, Lock, Thread
from typing import Any

import pytest

from duetime.delivery.http_client import (
    Address,
    DeliveryFailure,
    HttpClient,
    LacksResource,
    Resolver,
)
from duetime.delivery.http_client.resolver import Standing
from duetime.event_loop import next_turn
from tests.integration.delivery.http_client.servers import OK, answer_each_with, post, serve
from tests.polling import PATIENCE_SECONDS, poll

Task = asyncio.Task[Sequence[Address]]

LOOPBACK = (socket.AF_INET, "127.0.0.1")

MAX_SILENT_TOGETHER = 100
"""Names that resolved promptly and may fall silent together without holding up another one."""


class NameServers:
    """Answer at once, except for names that begin with `silent`, which wait for `release`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self._lock = Lock()
        self._released = Event()

    def look_up(self, host: str) -> Sequence[Address]:
        with self._lock:
            self.asked.append(host)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        if host.startswith("silent"):
            self._released.wait(PATIENCE_SECONDS)
        with self._lock:
            self.at_once -= 1
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [LOOPBACK]

    def release(self) -> None:
        self._released.set()

    def hold(self) -> None:
        self._released.clear()

    async def wait_until_asked(self, count: int) -> None:
        async def look() -> int:
            return len(self.asked)

        await poll(look, until=lambda asked: asked >= count)


@pytest.fixture
def servers() -> Iterator[NameServers]:
    servers = NameServers()
    yield servers
    servers.release()


async def resolve(
    resolver: Resolver, host: str, seconds: float = PATIENCE_SECONDS
) -> Sequence[Address]:
    return await resolver.resolve(host, 80, asyncio.get_running_loop().time() + seconds)


async def done_among(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.done()]


async def test_requests_to_a_silent_name_do_not_hold_up_another(
    monkeypatch: pytest.MonkeyPatch, servers: NameServers
) -> None:
    def getaddrinfo(host: str, port: object, *args: Any, **kwargs: Any) -> list[Any]:
        return [(family, 1, 6, "", (address, port)) for family, address in servers.look_up(host)]

    # The loop's own resolver ends there, too, so this test says the same of any client.
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    client = HttpClient()
    async with serve(answer_each_with(OK)) as server:
        silent = [
            asyncio.create_task(post(client, "http://silent.example.test/", timeout_seconds=60))
            for _ in range(40)
        ]
        await servers.wait_until_asked(1)
        url = server.url(host="prompt.example.test")
        assert (await post(client, url, timeout_seconds=8)).status == 200
        for task in silent:
            task.cancel()
        await asyncio.wait(silent)
    await client.close()


@pytest.mark.exclusive
async def test_a_name_that_does_not_resolve_in_time_fails_the_request(
    servers: NameServers,
) -> None:
    client = HttpClient(resolve=Resolver(servers.look_up).resolve)
    with pytest.raises(DeliveryFailure) as caught:
        await post(client, "http://silent.example.test/", timeout_seconds=0.1)
    assert str(caught.value) == "host name not resolved within 0.1 s: silent.example.test"
    await client.close()


async def test_all_who_wait_for_a_name_share_one_lookup(servers: NameServers) -> None:
    resolver = Resolver(servers.look_up)
    waiting = [asyncio.create_task(resolve(resolver, "silent.example")) for _ in range(20)]
    await servers.wait_until_asked(1)
    waiting.append(asyncio.create_task(resolve(resolver, "silent.example")))
    waiting[0].cancel()
    servers.release()
    assert await asyncio.gather(*waiting[1:]) == [[LOOPBACK]] * 20
    assert servers.asked == ["silent.example"]


@pytest.mark.parametrize(("seconds", "lookups"), [(60.0, 1), (0.0, 3)])
async def test_addresses_are_used_again_for_a_while(
    servers: NameServers, seconds: float, lookups: int
) -> None:
    resolver = Resolver(servers.look_up, found_seconds=seconds, not_found_seconds=0.0)
    for _ in range(3):
        assert await resolve(resolver, "prompt.example") == [LOOPBACK]
    assert len(servers.asked) == lookups


@pytest.mark.parametrize(("seconds", "lookups"), [(60.0, 1), (0.0, 3)])
async def test_a_failure_stands_for_a_while(
    servers: NameServers, seconds: float, lookups: int
) -> None:
    resolver = Resolver(servers.look_up, found_seconds=0.0, not_found_seconds=seconds)
    for _ in range(3):
        with pytest.raises(socket.gaierror, match="Name or service not known"):
            await resolve(resolver, "unknown.example")
    assert len(servers.asked) == lookups


@pytest.mark.parametrize(
    ("host", "address"),
    [("192.0.2.7", (socket.AF_INET, "192.0.2.7")), ("::1", (socket.AF_INET6, "::1"))],
)
async def test_an_address_needs_no_lookup(
    servers: NameServers, host: str, address: Address
) -> None:
    assert await resolve(Resolver(servers.look_up), host) == [address]
    assert not servers.asked


async def test_a_name_that_resolved_promptly_finds_a_thread_beside_many_silent_names(
    servers: NameServers,
) -> None:
    # On a busy machine any lookup may take a second.
    resolver = Resolver(servers.look_up, found_seconds=0.0, slow_seconds=60.0, turn_seconds=0.2)
    await resolve(resolver, "prompt.example")
    silent = [
        asyncio.create_task(resolve(resolver, f"silent-{number}.example")) for number in range(100)
    ]
    await servers.wait_until_asked(1 + Standing.UNKNOWN)
    assert await resolve(resolver, "prompt.example") == [LOOPBACK]
    # A lookup that did not get its turn is nobody's failure.
    turned_away = len(silent) - Standing.UNKNOWN
    await asyncio.wait(silent, return_when=asyncio.FIRST_COMPLETED)
    await poll(lambda: done_among(silent), until=lambda done: len(done) >= turned_away)
    under_way = [each for each in silent if not each.done()]
    assert len(under_way) == Standing.UNKNOWN
    assert all(isinstance(each.exception(), LacksResource) for each in await done_among(silent))
    servers.release()
    assert await asyncio.gather(*under_way) == [[LOOPBACK]] * Standing.UNKNOWN
    assert servers.most_at_once == Standing.UNKNOWN + 1


async def test_prompt_names_that_fall_silent_together_hold_up_no_others(
    servers: NameServers,
) -> None:
    zone = [f"silent-{number}.example" for number in range(MAX_SILENT_TOGETHER)]
    resolver = Resolver(servers.look_up, found_seconds=0.0, slow_seconds=60.0)
    servers.release()
    for name in [*zone, "prompt.example"]:
        await resolve(resolver, name)
    servers.hold()
    silent = [asyncio.create_task(resolve(resolver, name)) for name in zone]
    new = [
        asyncio.create_task(resolve(resolver, f"silent-new-{number}.example"))
        for number in range(2 * Standing.UNKNOWN)
    ]
    await servers.wait_until_asked(2 * len(zone) + 1 + Standing.UNKNOWN)
    assert await resolve(resolver, "prompt.example") == [LOOPBACK]
    servers.release()
    assert await asyncio.gather(*silent, *new) == [[LOOPBACK]] * (len(silent) + len(new))


async def test_names_that_were_slow_leave_threads_for_names_never_seen(
    servers: NameServers,
) -> None:
    names = [f"silent-{number}.example" for number in range(Standing.UNKNOWN)]
    resolver = Resolver(servers.look_up, found_seconds=0.0, slow_seconds=0.0, turn_seconds=0.2)
    servers.release()
    for name in names:
        await resolve(resolver, name)
    servers.hold()
    slow = [asyncio.create_task(resolve(resolver, name)) for name in names]
    await servers.wait_until_asked(Standing.UNKNOWN + Standing.SLOW)
    assert await resolve(resolver, "prompt.example") == [LOOPBACK]
    assert servers.most_at_once <= Standing.SLOW + 1
    servers.release()
    await asyncio.wait(slow)


async def test_a_lookup_without_a_thread_is_nobodys_failure(
    monkeypatch: pytest.MonkeyPatch, servers: NameServers
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = Resolver(servers.look_up)
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refuse)
        with pytest.raises(LacksResource, match="threads for name lookups"):
            await resolve(resolver, "prompt.example")
    assert await resolve(resolver, "prompt.example") == [LOOPBACK]


async def test_a_lookup_without_memory_is_nobodys_failure(
    monkeypatch: pytest.MonkeyPatch, servers: NameServers
) -> None:
    def lack_memory(_: object) -> Sequence[Address]:
        raise MemoryError

    with pytest.raises(LacksResource, match="memory"):
        await resolve(Resolver(lack_memory), "prompt.example")
    resolver = Resolver(servers.look_up)
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", lack_memory)
        with pytest.raises(LacksResource, match="memory"):
            await resolve(resolver, "prompt.example")
    assert await resolve(resolver, "prompt.example") == [LOOPBACK]


LIBUV_THREADS = 4

CONNECT_BY_NAME = """
    import asyncio, os, socket, sys
    import uvloop
    from duetime.delivery.http_client import HttpClient, Resolver, parse_target

    addresses = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.2")]

    async def main():
        for found in (addresses, addresses[:1]):
            client = HttpClient(resolve=Resolver(lambda host: found).resolve)
            target = parse_target(f"http://api.example.test:{sys.argv[1]}/")
            assert (await client.post(target, b"", None, 30)).status == 200
            await client.close()
        print(len(os.listdir("/proc/self/task")))

    uvloop.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
async def test_the_end_of_threads_is_nobodys_failure_however_many_names_wait(
    monkeypatch: pytest.MonkeyPatch, servers: NameServers
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = Resolver(servers.look_up, turn_seconds=PATIENCE_SECONDS)
    first = [asyncio.create_task(resolve(resolver, f"silent{n}.test")) for n in range(24)]
    await servers.wait_until_asked(24)
    names = [f"host{number}.test" for number in range(1_000)]
    waiting = [asyncio.create_task(resolve(resolver, name)) for name in names]
    await next_turn()
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refuse)
        servers.release()
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(result) for result in results} == {LacksResource}
    assert await asyncio.gather(*first) == [[LOOPBACK]] * 24
    assert await resolve(resolver, "host0.test") == [LOOPBACK]


async def test_connecting_leaves_the_threads_of_the_loop_alone() -> None:
    # Databases and brokers resolve names in them. libuv starts all of them with the first lookup.
    async with serve(answer_each_with(OK)) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(CONNECT_BY_NAME),
            str(server.port),
            stdout=subprocess.PIPE,
        )
        output, _ = await process.communicate()
    assert int(output) < 1 + LIBUV_THREADS
