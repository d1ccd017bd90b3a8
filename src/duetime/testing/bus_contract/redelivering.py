"""Commands that were handed over are acknowledged, given back, or left behind."""

import asyncio

import pytest

from duetime.ports.bus import Bus
from duetime.testing.bus_contract.nodes import SOON_SECONDS, AnotherBus, hands_over_again_soon
from duetime.testing.bus_contract.steps import (
    PATIENCE_SECONDS,
    contents,
    publish,
    take,
    take_nothing,
)


@pytest.mark.asyncio
class RedeliveringContract:
    @hands_over_again_soon
    async def test_acknowledged_commands_never_come_again(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "done", "done too")
        await bus.acknowledge(await take(bus, 2))
        assert list(await other.receive(10, 2 * SOON_SECONDS)) == []
        await bus.close()
        assert list(await other.receive(10, 2 * SOON_SECONDS)) == []

    async def test_acknowledging_or_giving_back_nothing_is_allowed(self, bus: Bus) -> None:
        await bus.acknowledge([])
        await bus.give_back([])

    async def test_acknowledging_twice_is_allowed(self, bus: Bus) -> None:
        await publish(bus, "done")
        held = await take(bus, 1)
        await bus.acknowledge(held)
        await bus.acknowledge(held)
        await take_nothing(bus)

    @hands_over_again_soon
    async def test_unacknowledged_commands_come_again(self, bus: Bus) -> None:
        await publish(bus, "stuck")
        (before,) = await take(bus, 1)
        (after,) = await take(bus, 1)
        assert (after.data, after.order) == (before.data, before.order)
        await bus.acknowledge([after])
        assert list(await bus.receive(10, 2 * SOON_SECONDS)) == []

    @hands_over_again_soon
    async def test_commands_of_a_stuck_node_reach_another(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "first", "second")
        before = await take(bus, 2)
        after = await take(other, 2)
        assert sorted((each.order, each.data) for each in after) == [
            (each.order, each.data) for each in before
        ]

    @hands_over_again_soon
    async def test_an_expired_command_reaches_a_node_that_is_already_waiting(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "stuck")
        await take(bus, 1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert contents(await other.receive(10, 2 * PATIENCE_SECONDS)) == ["stuck"]

    @hands_over_again_soon
    async def test_commands_of_a_closed_node_reach_another(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "first", "second", "third")
        first, *_ = await take(bus, 3)
        await bus.acknowledge([first])
        await bus.close()
        assert sorted(contents(await take(other, 2))) == ["second", "third"]

    @hands_over_again_soon
    async def test_newer_commands_do_not_keep_older_ones_from_coming_again(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "old")
        await take(bus, 1)
        seen: list[str] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "old" not in seen:
                await publish(bus, f"new {len(seen)}")
                commands = await take(other, 1)
                await other.acknowledge(commands)
                seen += contents(commands)
                # Lets virtual time pass, without a call of the bus.
                await asyncio.wait({asyncio.Future[None]()}, timeout=0.001)

    async def test_commands_given_back_come_again_soon(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        await publish(bus, "first", "second", "third")
        first, second, third = await take(bus, 3)
        await bus.give_back([first, third])
        again = sorted(await take(other, 2), key=lambda command: command.order)
        assert contents(again) == ["first", "third"]
        assert [each.order for each in again] == [first.order, third.order]
        await other.acknowledge(again)
        await bus.acknowledge([second])
        await take_nothing(other)

    async def test_a_command_given_back_may_return_to_the_same_node(self, bus: Bus) -> None:
        await publish(bus, "again")
        for _ in range(3):
            held = await take(bus, 1)
            assert contents(held) == ["again"]
            await bus.give_back(held)

    async def test_giving_back_an_acknowledged_command_changes_nothing(self, bus: Bus) -> None:
        await publish(bus, "done")
        held = await take(bus, 1)
        await bus.acknowledge(held)
        await bus.give_back(held)
        await take_nothing(bus)
