"""The bus on Redis Streams beyond the contract: servers that crash, are full, or are altered
by others."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from redis.asyncio import Redis

from duetime.bus.redis import bus as redis_streams
from duetime.bus.redis import connection as redis_connection
from duetime.bus.redis.bus import GROUP, RedisBus
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Channel
from duetime.testing.bus_contract.steps import (
    contents,
    message,
    publish,
    publish_at_once,
    see,
    take,
    take_nothing,
)
from tests.brokers.valkey_fixtures import MakeValkey

COMMANDS = Channel.COMMANDS.value
EVENTS = Channel.EVENTS.value

Open = Callable[[RedisBus], Awaitable[RedisBus]]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens a bus, and closes it after the test."""
    buses: list[RedisBus] = []

    async def opened(bus: RedisBus) -> RedisBus:
        buses.append(bus)
        await bus.open()
        return bus

    yield opened
    await asyncio.gather(*(bus.close() for bus in buses))


@pytest.fixture
async def bus(redis_url: str, opened: Open) -> RedisBus:
    return await opened(RedisBus(redis_url, "node-1"))


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[Redis]:
    """A client other than Duetime."""
    async with Redis.from_url(redis_url, protocol=2) as client:
        yield client


async def consumers(server: Redis) -> set[bytes]:
    return {consumer["name"] for consumer in await server.xinfo_consumers(COMMANDS, GROUP)}


@asynccontextmanager
async def tls_in_front_of(url: str, certificate: trustme.LeafCert) -> AsyncIterator[str]:
    """A server with TLS; skipped if its program was built without TLS."""
    place = urlsplit(url)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(place.hostname, place.port)
        await asyncio.gather(
            pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True
        )

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    async with listener:
        host, port = listener.sockets[0].getsockname()
        yield f"{host}:{port}"


async def test_commands_of_a_dead_consumer_are_reclaimed(
    redis_url: str, server: Redis, opened: Open
) -> None:
    bus = await opened(RedisBus(redis_url, "node-1", redeliver_after_seconds=0.2))
    await publish(bus, "first", "second", "third")
    await server.xreadgroup(GROUP, "dead", {COMMANDS: ">"}, count=2)
    await server.aclose()
    assert contents(await take(bus, 3)) == ["third", "first", "second"]


async def test_a_busy_node_also_reclaims_commands(
    redis_url: str, server: Redis, opened: Open
) -> None:
    bus = await opened(RedisBus(redis_url, "node-1", redeliver_after_seconds=0.2))
    await publish(bus, "lost")
    await server.xreadgroup(GROUP, "dead", {COMMANDS: ">"})
    seen: list[str] = []
    async with asyncio.timeout(10):
        while "lost" not in seen:
            await publish_at_once(bus, (f"new {len(seen)}-{number}" for number in range(10)))
            commands = await take(bus, 10)
            await bus.acknowledge(commands)
            seen += contents(commands)


async def test_the_bus_survives_a_server_crash(make_valkey: MakeValkey, opened: Open) -> None:
    server = make_valkey()
    bus = await opened(RedisBus(server.url, "node-1", redeliver_after_seconds=0.2))
    await publish(bus, "held", "done", "waiting")
    held, done = await take(bus, 2)
    await bus.acknowledge([done])

    server.process.kill()
    with pytest.raises(BusUnavailable, match=server.url):
        await publish(bus, "to nobody")
    with pytest.raises(BusUnavailable):
        await bus.receive(1, 0.1)
    assert not bus.is_connected

    server.process.start()
    again = await take(bus, 2)
    assert sorted(contents(again)) == ["held", "waiting"]
    assert held.order in [command.order for command in again]
    assert bus.is_connected


async def test_a_crash_fails_only_the_attempts_under_way(
    make_valkey: MakeValkey, opened: Open
) -> None:
    """Idle connections from before the crash are not used again."""
    server = make_valkey()
    bus = await opened(RedisBus(server.url, "node-1"))
    await publish(bus, "before")
    await asyncio.to_thread(server.restart)
    await publish(bus, "after")
    assert contents(await take(bus, 2)) == ["before", "after"]


async def test_a_server_crash_in_a_burst_loses_no_stored_message(
    make_valkey: MakeValkey, opened: Open
) -> None:
    server = make_valkey()
    bus = await opened(RedisBus(server.url, "node-1"))
    unsent = iter(range(3_000))
    stored: set[str] = set()
    many_are_stored = asyncio.Event()
    refusals = 0

    async def publish_all() -> None:
        nonlocal refusals
        for number in unsent:
            while str(number) not in stored:
                try:
                    await publish(bus, str(number))
                except BusUnavailable:
                    refusals += 1
                else:
                    stored.add(str(number))
            if len(stored) >= 500:
                many_are_stored.set()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(publish_all())
        await many_are_stored.wait()
        await asyncio.to_thread(server.restart)
    assert refusals
    received: set[str] = set()
    while len(received) < len(stored):
        commands = await take(bus, 1)
        commands += await bus.receive(1_000, 0)
        await bus.acknowledge(commands)
        received.update(contents(commands))
    assert received == stored == set(map(str, range(3_000)))


async def test_a_silent_server_blocks_no_caller(
    make_valkey: MakeValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_connection, "ANSWER_SECONDS", 0.5)
    server = make_valkey()
    bus = RedisBus(server.url, "node-1")
    await bus.open()
    server.process.pause()
    async with asyncio.timeout(25):
        problems = await asyncio.gather(
            publish(bus, "hello"), bus.receive(1, 0.1), bus.open(), return_exceptions=True
        )
        assert [type(problem) for problem in problems] == [BusUnavailable] * 3
        assert "no answer" in str(problems[0])
        await bus.close()


async def test_messages_are_stored_in_the_order_of_publishing(bus: RedisBus) -> None:
    published = [f"command {number}" for number in range(2_500)]
    await publish_at_once(bus, published)
    assert contents(await take(bus, 2_500)) == published


async def test_a_refused_message_harms_no_other(bus: RedisBus, server: Redis) -> None:
    await server.set(EVENTS, "no stream")
    answers = await asyncio.gather(
        publish(bus, "before"),
        publish(bus, "event", channel=Channel.EVENTS),
        publish(bus, "after"),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [type(None), BusUnavailable, type(None)]
    assert contents(await take(bus, 2)) == ["before", "after"]


async def test_events_are_trimmed_by_age_and_commands_never(
    redis_url: str, server: Redis, opened: Open
) -> None:
    bus = await opened(RedisBus(redis_url, "node-1", keep_seconds=0.0))
    for channel in Channel:
        for batch in range(10):
            many = (message(f"{batch}-{number}", channel=channel) for number in range(200))
            await asyncio.gather(*map(bus.publish, many))
    assert await server.xlen(EVENTS) < 1_000
    assert await server.xlen(Channel.REJECTED.value) < 1_000
    assert await server.xlen(COMMANDS) == 2_000


async def test_events_are_kept_for_a_week(bus: RedisBus, server: Redis) -> None:
    for batch in range(5):
        many = (message(f"{batch}-{n}", channel=Channel.EVENTS) for n in range(200))
        await asyncio.gather(*map(bus.publish, many))
    assert await server.xlen(EVENTS) == 1_000


async def test_acknowledged_commands_take_no_memory(bus: RedisBus, server: Redis) -> None:
    await publish_at_once(bus, map(str, range(100)))
    await bus.acknowledge(await take(bus, 100))
    assert await server.xlen(COMMANDS) == 0


async def test_a_full_server_still_hands_over_its_commands(
    make_valkey: MakeValkey, opened: Open
) -> None:
    server = make_valkey()
    bus = await opened(RedisBus(server.url, "node-1"))
    await publish(bus, "first", "second")
    async with Redis.from_url(server.url) as client:
        await client.config_set("maxmemory", "1")
        with pytest.raises(BusUnavailable, match="has no memory left"):
            await publish(bus, "third")
        assert bus.is_connected
        other = await opened(RedisBus(server.url, "node-2"))
        first, second = await take(other, 2)
        await other.acknowledge([first])
        await other.give_back([second])
        assert contents(await take(bus, 1)) == ["second"]
        await client.config_set("maxmemory", "0")
    await publish(bus, "third")
    assert contents(await take(bus, 1)) == ["third"]


async def test_opening_again_creates_a_deleted_group(bus: RedisBus, server: Redis) -> None:
    await publish(bus, "done", "held", "waiting")
    done, _ = await take(bus, 2)
    await bus.acknowledge([done])
    await server.xgroup_destroy(COMMANDS, GROUP)
    with pytest.raises(BusUnavailable, match="consumer group"):
        await bus.receive(1, 0.1)
    await bus.open()
    assert contents(await take(bus, 2)) == ["held", "waiting"]


async def test_opening_again_creates_a_deleted_stream(bus: RedisBus, server: Redis) -> None:
    await publish(bus, "gone")
    (gone,) = await take(bus, 1)
    await server.delete(COMMANDS)
    with pytest.raises(BusUnavailable):
        await bus.receive(1, 0.1)
    await bus.open()
    await publish(bus, "new")
    (new,) = await take(bus, 1)
    assert contents([new]) == ["new"]
    assert new.order > gone.order


async def test_an_existing_group_stays_unchanged(
    redis_url: str, server: Redis, opened: Open
) -> None:
    await server.xadd(COMMANDS, {"data": "skipped"})
    await server.xgroup_create(COMMANDS, GROUP, "$")
    bus = await opened(RedisBus(redis_url, "node-1"))
    await take_nothing(bus)


async def test_commands_from_before_the_first_start_are_received(
    redis_url: str, server: Redis, opened: Open
) -> None:
    await server.xadd(COMMANDS, {"data": "early"})
    bus = await opened(RedisBus(redis_url, "node-1"))
    assert contents(await take(bus, 1)) == ["early"]


async def test_an_entry_without_data_is_an_empty_command(bus: RedisBus, server: Redis) -> None:
    await publish(bus, "before")
    await server.xadd(COMMANDS, {"body": "{}"})
    await publish(bus, "after")
    async with aclosing(bus.watch(Channel.COMMANDS, last=3)) as watch:
        assert await see(watch, 3) == ["before", "", "after"]
    before, empty, after = commands = await take(bus, 3)
    assert contents(commands) == ["before", "", "after"]
    await bus.give_back([empty])
    assert contents(await take(bus, 1)) == [""]
    await bus.acknowledge([before, empty, after])
    assert await server.xlen(COMMANDS) == 0
    await take_nothing(bus)


async def test_a_closed_node_leaves_no_consumer(
    redis_url: str, server: Redis, opened: Open
) -> None:
    bus = await opened(RedisBus(redis_url, "node-1"))
    await publish(bus, "held")
    await take(bus, 1)
    assert b"node-1" in await consumers(server)
    await bus.close()
    assert b"node-1" not in await consumers(server)
    other = await opened(RedisBus(redis_url, "node-2"))
    assert contents(await take(other, 1)) == ["held"]


async def test_idle_consumers_are_removed_unless_they_hold_commands(
    redis_url: str, bus: RedisBus, server: Redis, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(bus, "held")
    await server.xreadgroup(GROUP, "holder", {COMMANDS: ">"})
    await server.xgroup_createconsumer(COMMANDS, GROUP, "gone")
    await opened(RedisBus(redis_url, "node-2"))
    assert await consumers(server) >= {b"holder", b"gone"}
    monkeypatch.setattr(redis_streams, "FORGET_CONSUMER_AFTER_MS", -1)
    await opened(RedisBus(redis_url, "node-3"))
    assert await consumers(server) & {b"holder", b"gone"} == {b"holder"}


async def test_the_password_is_used_and_never_shown(make_valkey: MakeValkey, opened: Open) -> None:
    server = make_valkey("--requirepass", "s3cret")
    address = server.url.removeprefix("redis://")
    bus = await opened(RedisBus(f"redis://:s3cret@{address}/3", "node-1"))
    await publish(bus, "hello")
    assert bus.name == f"redis://{address}/3"
    for wrong in (f"redis://{address}", f"redis://:s3cret-not@{address}"):
        with pytest.raises(BusUnavailable, match="password") as caught:
            await opened(RedisBus(wrong, "node-2"))
        assert "s3cret" not in caught.value.message
    server.process.kill()
    with pytest.raises(BusUnavailable) as caught:
        await publish(bus, "hello")
    assert "s3cret" not in caught.value.message


async def test_tls_is_used_and_the_certificate_is_checked(
    redis_url: str, opened: Open, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with tls_in_front_of(redis_url, authority.issue_cert("127.0.0.1")) as address:
        with pytest.raises(BusUnavailable, match="certificate"):
            await opened(RedisBus(f"rediss://{address}", "node-1"))
        url = f"rediss://{address}?ssl_ca_certs={tmp_path / 'ca.pem'}"
        bus = await opened(RedisBus(url, "node-1"))
        await publish(bus, "hello")
        assert contents(await take(bus, 1)) == ["hello"]
        await bus.close()
