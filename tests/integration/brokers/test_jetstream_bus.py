"""The bus on NATS JetStream beyond the contract."""

import asyncio
import contextlib

import pytest
from nats.aio.client import Client
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)

from duetime.bus.jetstream import watch as jetstream_watch
from duetime.bus.jetstream.bus import JetStreamBus
from duetime.clock import SystemClock
from duetime.domain.errors import BusUnavailable
from duetime.nats import NatsOptions
from duetime.ports.bus import Channel, OutgoingMessage, ReceivedCommand
from tests.brokers.nats_fixtures import MakeNats
from tests.brokers.nats_server import NatsServer
from tests.integration.brokers.conftest import OpenBus

PATIENCE_SECONDS = 10.0


def command(id: str, data: bytes = b"{}", key: str = "acme.call-1") -> OutgoingMessage:
    return OutgoingMessage(channel=Channel.COMMANDS, id=id, key=key, data=data)


def event(id: str, data: bytes = b"{}", key: str = "acme.call-1") -> OutgoingMessage:
    return OutgoingMessage(channel=Channel.EVENTS, id=id, key=key, data=data)


async def take(bus: JetStreamBus, count: int) -> list[ReceivedCommand]:
    taken: list[ReceivedCommand] = []
    while len(taken) < count:
        received = await bus.receive(count - len(taken), PATIENCE_SECONDS)
        assert received, f"only {len(taken)} of {count} commands came"
        taken += received
    return taken


async def open_again(bus: JetStreamBus) -> None:
    """Retry: the bus may not have noticed yet that the server was away."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with contextlib.suppress(BusUnavailable):
                return await bus.open()


async def test_missing_streams_and_the_consumer_are_created(
    open_bus: OpenBus, client: Client
) -> None:
    await open_bus()

    streams = {info.config.name: info.config for info in await client.jsm().streams_info()}

    assert {name: config.subjects for name, config in streams.items()} == {
        "TIMER_COMMANDS": ["timer.commands"],
        "TIMER_EVENTS": ["timer.events"],
        "TIMER_REJECTED": ["timer.commands.rejected"],
    }
    assert all(config.storage == StorageType.FILE for config in streams.values())
    assert streams["TIMER_COMMANDS"].retention == RetentionPolicy.WORK_QUEUE
    for name in ("TIMER_EVENTS", "TIMER_REJECTED"):
        assert streams[name].retention == RetentionPolicy.LIMITS
        assert streams[name].max_age == 7 * 86_400
        assert streams[name].duplicate_window == 120
    consumer = (await client.jsm().consumer_info("TIMER_COMMANDS", "duetime")).config
    assert consumer.ack_policy == AckPolicy.EXPLICIT
    assert consumer.ack_wait == 30
    assert consumer.max_ack_pending == 4_096
    assert consumer.deliver_subject is None


async def test_existing_streams_and_consumers_are_used_unchanged(
    open_bus: OpenBus, client: Client
) -> None:
    manager = client.jsm()
    own = StreamConfig(
        name="EVERYTHING", subjects=["timer.>"], storage=StorageType.MEMORY, max_msgs=500
    )
    await manager.add_stream(own)
    await manager.add_consumer(
        "EVERYTHING",
        ConsumerConfig(
            durable_name="duetime",
            filter_subject="timer.commands",
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=7,
            max_ack_pending=11,
        ),
    )

    bus = await open_bus()
    await bus.publish(command("one", b"content"))
    await bus.publish(event("two"))

    assert [each.data for each in await take(bus, 1)] == [b"content"]
    (stream,) = await manager.streams_info()
    assert stream.config.name == "EVERYTHING"
    assert stream.config.max_msgs == 500
    assert stream.state.messages == 2
    consumer = (await manager.consumer_info("EVERYTHING", "duetime")).config
    assert (consumer.ack_wait, consumer.max_ack_pending) == (7, 11)


async def test_looking_back_skips_deleted_messages_and_other_subjects(
    open_bus: OpenBus, client: Client
) -> None:
    manager = client.jsm()
    await manager.add_stream(StreamConfig(name="EVERYTHING", subjects=["timer.>", "else"]))
    bus = await open_bus()
    for number in range(300):
        await client.jetstream().publish("else", b"")
        if number % 100 == 0:
            # A sender without ids repeats its message.
            await client.jetstream().publish("timer.events", b"same")
            await bus.publish(event(f"{number}", b"%d" % number))
    await manager.delete_msg("EVERYTHING", (await manager.stream_info("EVERYTHING")).state.last_seq)
    await manager.delete_msg("EVERYTHING", 3)

    async with asyncio.timeout(PATIENCE_SECONDS):
        for last, seen in ((4, b"same 100 same 200"), (50, b"same same 100 same 200")):
            async with contextlib.aclosing(bus.watch(Channel.EVENTS, last)) as watch:
                assert [await anext(watch) for _ in seen.split()] == seen.split()
                await bus.publish(event(f"new {last}", b"new"))
                assert await anext(watch) == b"new"
            newest = (await manager.stream_info("EVERYTHING")).state.last_seq
            await manager.delete_msg("EVERYTHING", newest)


async def test_looking_back_is_bounded(
    open_bus: OpenBus, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_watch, "MAX_OLD_MESSAGES", 10)
    await client.jsm().add_stream(StreamConfig(name="ALL", subjects=["timer.>", "else"]))
    bus = await open_bus()
    await bus.publish(event("far", b"far"))
    for _ in range(9):
        await client.jetstream().publish("else", b"")
    await bus.publish(event("near", b"near"))

    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        contextlib.aclosing(bus.watch(Channel.EVENTS, 2)) as watch,
    ):
        assert await anext(watch) == b"near"


async def test_a_repeat_of_a_message_id_is_dropped(open_bus: OpenBus, client: Client) -> None:
    bus = await open_bus()

    for id in ("same", "same", "other"):
        await bus.publish(event(id))

    assert (await client.jsm().stream_info("TIMER_EVENTS")).state.messages == 2


async def test_key_and_id_travel_as_headers_whatever_they_contain(
    open_bus: OpenBus, client: Client
) -> None:
    bus = await open_bus()

    await bus.publish(event("id 1", key="tenänt.call 1\r\n100%"))

    stored = await client.jsm().get_msg("TIMER_EVENTS", 1)
    assert stored.headers == {
        "Nats-Msg-Id": "id%201",
        "Partition-Key": "ten%C3%A4nt.call%201%0D%0A100%25",
    }


async def test_unacknowledged_messages_survive_a_server_crash(
    open_bus: OpenBus, server: NatsServer
) -> None:
    """The server confirms no answer, so it may have died before it read that commands were given
    back. They then come when their time to be acknowledged is over."""
    bus = await open_bus(redeliver_after_seconds=1)
    for number in range(20):
        await bus.publish(command(f"{number}", str(number).encode()))
    done = await take(bus, 5)
    await bus.acknowledge(done)
    await bus.give_back(await take(bus, 5))
    missing = {str(number).encode() for number in range(20)} - {each.data for each in done}

    server.kill()
    with pytest.raises(BusUnavailable):
        await bus.publish(event("not now"))
    server.start()
    await open_again(bus)

    await bus.publish(event("again"))
    while missing:
        missing -= {each.data for each in await take(bus, 1)}


async def test_a_waiting_receive_survives_a_server_restart(
    open_bus: OpenBus, server: NatsServer, client: Client
) -> None:
    bus = await open_bus()
    assert not await bus.receive(10, 0.05)

    server.restart()
    await open_again(bus)
    sender = JetStreamBus(NatsOptions(url=server.url), SystemClock())
    await sender.open()
    await sender.publish(command("late", b"late"))
    await sender.close()

    assert [each.data for each in await take(bus, 1)] == [b"late"]


async def test_a_deleted_consumer_is_reported_and_created_again(
    open_bus: OpenBus, client: Client
) -> None:
    bus = await open_bus()
    await client.jsm().delete_consumer("TIMER_COMMANDS", "duetime")

    with pytest.raises(BusUnavailable, match="consumer duetime of TIMER_COMMANDS"):
        await bus.receive(10, PATIENCE_SECONDS)

    await bus.open()
    await bus.publish(command("one", b"one"))
    assert [each.data for each in await take(bus, 1)] == [b"one"]


async def test_a_deleted_stream_is_created_again(open_bus: OpenBus, client: Client) -> None:
    bus = await open_bus()
    await client.jsm().delete_stream("TIMER_EVENTS")

    with pytest.raises(BusUnavailable, match=r"no stream stores timer\.events"):
        await bus.publish(event("one"))

    await bus.open()
    await bus.publish(event("one"))


async def test_a_full_stream_is_reported(open_bus: OpenBus, client: Client) -> None:
    await client.jsm().add_stream(
        StreamConfig(name="SMALL", subjects=["timer.events"], max_msgs=1, discard=DiscardPolicy.NEW)
    )
    bus = await open_bus()
    await bus.publish(event("one"))

    with pytest.raises(BusUnavailable, match="maximum messages exceeded"):
        await bus.publish(event("two"))


async def test_a_server_without_jetstream_is_explained(make_nats: MakeNats) -> None:
    bus = JetStreamBus(NatsOptions(url=make_nats(jetstream=False).url), SystemClock())

    with pytest.raises(BusUnavailable, match=r"JetStream is not enabled at .*'-js'"):
        await bus.open()

    await bus.close()


async def test_an_absent_server_is_reported_at_once(make_nats: MakeNats) -> None:
    server = make_nats()
    server.kill()
    bus = JetStreamBus(NatsOptions(url=server.url), SystemClock())

    with pytest.raises(BusUnavailable, match=r"cannot connect to nats://.*: connection refused"):
        await bus.open()

    await bus.close()
