"""The broker in memory beyond the contract: its failures and limits."""

import asyncio

import pytest

from duetime.bus.memory import MAX_KEPT, MemoryBroker, MemoryBus
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Bus, Channel
from duetime.testing.bus_contract.steps import contents, message, publish, take, take_nothing
from duetime.testing.virtual_loop import on_virtual_time


async def opened(broker: MemoryBroker) -> Bus:
    bus = MemoryBus(broker)
    await bus.open()
    return bus


@on_virtual_time
async def test_unacknowledged_commands_come_again_after_half_a_minute() -> None:
    loop = asyncio.get_running_loop()
    bus = await opened(MemoryBroker())
    await publish(bus, "stuck")
    await take(bus, 1)
    started_at = loop.time()
    assert contents(await bus.receive(1, 3_600)) == ["stuck"]
    assert loop.time() - started_at == pytest.approx(30)


@on_virtual_time
async def test_waiting_for_commands_ends_in_time() -> None:
    loop = asyncio.get_running_loop()
    bus = await opened(MemoryBroker())
    started_at = loop.time()
    assert list(await bus.receive(1, 3_600)) == []
    assert loop.time() - started_at == pytest.approx(3_600)


async def test_stored_messages_can_be_inspected() -> None:
    broker = MemoryBroker()
    bus = await opened(broker)
    await publish(bus, "first", "second")
    await publish(bus, "event", channel=Channel.EVENTS)
    assert broker.messages(Channel.COMMANDS) == [b"first", b"second"]
    assert broker.messages(Channel.EVENTS) == [b"event"]
    await bus.acknowledge(await take(bus, 1))
    assert broker.messages(Channel.COMMANDS) == [b"second"]


async def test_a_failing_broker_does_nothing_and_raises() -> None:
    broker = MemoryBroker()
    bus = await opened(broker)
    await publish(bus, "before")
    held = await take(bus, 1)
    broker.fail_with("on fire")
    for work in (
        bus.open(),
        bus.receive(1, 10),
        bus.acknowledge(held),
        bus.give_back(held),
        bus.publish(message("meanwhile")),
        anext(bus.watch(Channel.EVENTS)),
    ):
        with pytest.raises(BusUnavailable, match="on fire"):
            await work
    assert not bus.is_connected
    broker.fail_with(None)
    assert broker.messages(Channel.COMMANDS) == [b"before"]
    await take_nothing(bus)
    assert bus.is_connected


async def test_a_waiting_receive_fails_with_the_broker() -> None:
    broker = MemoryBroker()
    bus = await opened(broker)
    waiting = asyncio.ensure_future(bus.receive(1, 3_600))
    await asyncio.wait({waiting}, timeout=0.01)
    broker.fail_with("on fire")
    with pytest.raises(BusUnavailable, match="on fire"):
        await waiting


async def test_a_lost_answer_leaves_the_message_stored_and_its_repeat_is_dropped() -> None:
    broker = MemoryBroker()
    bus = await opened(broker)
    event = message("event", channel=Channel.EVENTS)
    broker.lose_answers_with("no answer")
    with pytest.raises(BusUnavailable, match="no answer"):
        await bus.publish(event)
    broker.lose_answers_with(None)
    await bus.publish(event)
    assert broker.messages(Channel.EVENTS) == [b"event"]


async def test_closing_works_while_the_broker_fails() -> None:
    broker = MemoryBroker()
    bus, other = await opened(broker), await opened(broker)
    await publish(bus, "held")
    await take(bus, 1)
    broker.fail_with("on fire")
    await bus.close()
    broker.fail_with(None)
    assert contents(await take(other, 1)) == ["held"]


async def test_old_events_make_room_for_new_ones() -> None:
    broker = MemoryBroker()
    bus = await opened(broker)
    for number in range(MAX_KEPT + 10):
        await bus.publish(message(b"%d" % number, channel=Channel.EVENTS))
    stored = broker.messages(Channel.EVENTS)
    assert len(stored) == MAX_KEPT
    assert stored[-1] == b"%d" % (MAX_KEPT + 9)


async def test_a_bus_creates_its_own_broker_by_default() -> None:
    one, other = MemoryBus(), MemoryBus()
    await one.open()
    await other.open()
    await publish(one, "hello")
    await take_nothing(other)
    assert contents(await take(one, 1)) == ["hello"]
