"""Receiving commands: order, limits, waiting, and sharing between nodes."""

import asyncio
from itertools import pairwise

import pytest

from duetime.ports.bus import Bus, ReceivedCommand
from duetime.testing.bus_contract.nodes import AnotherBus
from duetime.testing.bus_contract.steps import (
    PATIENCE_SECONDS,
    SHORT_SECONDS,
    contents,
    message,
    publish,
    publish_at_once,
    take,
    take_nothing,
)

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

MAX_IN_FLIGHT = 5_000
"""Unacknowledged commands: a few thousand, and some more for nodes that ask at the same time."""


@pytest.mark.asyncio
class ReceivingContract:
    async def test_commands_are_received_in_the_order_of_publishing(self, bus: Bus) -> None:
        published = [f"command {number}" for number in range(20)]
        await publish(bus, *published)
        assert contents(await take(bus, 20)) == published

    async def test_the_trace_context_of_a_command_comes_beside_it(self, bus: Bus) -> None:
        await bus.publish(message("traced", traceparent=TRACEPARENT))
        await publish(bus, "plain")
        traced, plain = await take(bus, 2)
        assert (traced.data, traced.traceparent) == (b"traced", TRACEPARENT.encode())
        assert plain.traceparent is None

    async def test_the_order_of_a_command_grows(self, bus: Bus) -> None:
        await publish(bus, *map(str, range(20)))
        orders = [command.order for command in await take(bus, 20)]
        assert all(earlier < later for earlier, later in pairwise(orders))

    async def test_the_order_grows_after_earlier_commands_are_gone(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        await publish(bus, "first", "second")
        first, second = await take(bus, 2)
        await bus.acknowledge([first, second])
        other = await another_bus()
        await publish(other, "third")
        (third,) = await take(other, 1)
        assert first.order < second.order < third.order

    async def test_no_more_than_the_limit_are_received(self, bus: Bus) -> None:
        await publish(bus, *map(str, range(5)))
        received = await bus.receive(2, PATIENCE_SECONDS)
        assert contents(received) == ["0", "1"][: len(received)]
        assert received
        rest = await take(bus, 5 - len(received))
        assert contents([*received, *rest]) == ["0", "1", "2", "3", "4"]

    async def test_commands_wait_until_they_are_acknowledged(self, bus: Bus) -> None:
        assert await bus.count_waiting() == 0
        await publish(bus, "first", "second", "third")
        assert await bus.count_waiting() == 3
        received = await take(bus, 2)
        assert await bus.count_waiting() == 3
        await bus.acknowledge(received)
        async with asyncio.timeout(PATIENCE_SECONDS):
            # A broker need not confirm acknowledgements.
            while await bus.count_waiting() != 1:
                await bus.receive(1, SHORT_SECONDS)

    async def test_nothing_is_received_from_an_empty_channel(self, bus: Bus) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert list(await bus.receive(10, SHORT_SECONDS)) == []
            assert list(await bus.receive(10, 0.0)) == []

    async def test_a_waiting_node_gets_a_command_as_soon_as_it_comes(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        async with asyncio.timeout(PATIENCE_SECONDS):
            waiting = asyncio.ensure_future(other.receive(10, 2 * PATIENCE_SECONDS))
            await asyncio.wait({waiting}, timeout=SHORT_SECONDS)
            assert not waiting.done()
            await publish(bus, "at last")
            assert contents(await waiting) == ["at last"]

    async def test_a_held_command_is_handed_over_to_no_other_node(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "mine")
        await take(bus, 1)
        await take_nothing(other)
        await take_nothing(bus)

    async def test_nodes_share_the_commands(self, bus: Bus, another_bus: AnotherBus) -> None:
        nodes = [bus, await another_bus(), await another_bus()]
        published = [f"command {number}" for number in range(300)]
        received: list[str] = []

        async def work(node: Bus) -> None:
            while len(received) < len(published):
                commands = await node.receive(7, SHORT_SECONDS)
                received.extend(contents(commands))
                await node.acknowledge(commands)

        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            for node in nodes:
                group.create_task(work(node))
            await publish_at_once(bus, published)
        assert sorted(received) == sorted(published)

    async def test_no_more_than_a_few_thousand_are_in_flight(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        nodes = [bus, await another_bus()]
        await publish_at_once(bus, map(str, range(MAX_IN_FLIGHT + 1_000)))
        held: list[ReceivedCommand] = []
        for node in nodes:
            while received := await node.receive(1_000, 0.5):
                held += received
        assert 1_000 <= len(held) <= MAX_IN_FLIGHT
        await bus.acknowledge(held)
        rest = await take(bus, MAX_IN_FLIGHT + 1_000 - len(held))
        assert len(set(contents([*held, *rest]))) == MAX_IN_FLIGHT + 1_000
