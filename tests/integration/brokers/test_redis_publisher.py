"""Events on Redis whose permission to be sent ends while they wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from duetime.bus.redis.bus import RedisBus
from duetime.bus.redis.connection import RedisConnection
from duetime.bus.redis.publisher import RedisPublisher
from duetime.domain.outcome import NotSent
from duetime.ports.bus import Channel
from duetime.ports.destination import always
from duetime.testing.bus_contract.steps import message, see
from tests.brokers.valkey_fixtures import MakeValkey


class Permission:
    """Given until it is withdrawn."""

    def __init__(self) -> None:
        self.is_given = True
        self.asked = asyncio.Event()

    def __call__(self) -> bool:
        self.asked.set()
        return self.is_given


@asynccontextmanager
async def gate_before(url: str) -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """Another URL of the server, an event for the first connection there, and the event that lets
    connections pass."""
    server = urlsplit(url)
    arrived, opened = asyncio.Event(), asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await opened.wait()
        answers, there = await asyncio.open_connection(server.hostname, server.port)
        await asyncio.gather(_pump(reader, there), _pump(answers, writer))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listener:
        host, port = listener.sockets[0].getsockname()
        yield f"redis://{host}:{port}", arrived, opened


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


async def stored_events(bus: RedisBus, count: int) -> list[str]:
    watch = bus.watch(Channel.EVENTS, last=100)
    try:
        return await see(watch, count)
    finally:
        await watch.aclose()


async def test_nothing_is_sent_under_a_lease_that_ran_out_behind_another_batch(
    make_valkey: MakeValkey,
) -> None:
    server = make_valkey()
    bus, first, second = RedisBus(server.url, "node-1"), Permission(), Permission()
    await bus.open()
    server.process.pause()
    sending = asyncio.ensure_future(bus.publish(message("first", channel=Channel.EVENTS), first))
    await first.asked.wait()
    waiting = asyncio.ensure_future(bus.publish(message("second", channel=Channel.EVENTS), second))
    third = asyncio.ensure_future(bus.publish(message("third", channel=Channel.EVENTS)))
    first.is_given = second.is_given = False
    server.process.resume()
    await sending
    with pytest.raises(NotSent):
        await waiting
    await third
    assert await stored_events(bus, 2) == ["first", "third"]
    await bus.close()


async def test_nothing_is_sent_under_a_lease_that_ran_out_while_connecting(
    make_valkey: MakeValkey,
) -> None:
    server, permission = make_valkey(), Permission()
    async with gate_before(server.url) as (url, arrived, opened):
        connection = RedisConnection(url)
        connection.open()
        publisher = RedisPublisher(connection, keep_seconds=60)
        late, next_ = (message(text, channel=Channel.EVENTS) for text in ("late", "next"))
        sending = asyncio.ensure_future(publisher.publish(late, permission))
        await arrived.wait()
        permission.is_given = False
        opened.set()
        with pytest.raises(NotSent):
            await sending
        await publisher.publish(next_, always)
        await connection.close()
    bus = RedisBus(server.url, "node-1")
    await bus.open()
    assert await stored_events(bus, 1) == ["next"]
    await bus.close()
