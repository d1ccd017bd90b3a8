"""Opening and closing a bus, and its name and state."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Bus, Channel, ReceivedCommand
from duetime.testing.bus_contract.nodes import AnotherBus, MakeBus
from duetime.testing.bus_contract.steps import PATIENCE_SECONDS, contents, message, publish, take

AFTER_CLOSE: dict[str, Callable[[Bus, list[ReceivedCommand]], Awaitable[object]]] = {
    "receive": lambda bus, held: bus.receive(1, PATIENCE_SECONDS),
    "acknowledge": lambda bus, held: bus.acknowledge(held),
    "give back": lambda bus, held: bus.give_back(held),
    "publish": lambda bus, held: bus.publish(message("too late")),
    "watch": lambda bus, held: anext(bus.watch(Channel.EVENTS)),
}


@pytest.mark.asyncio
class OpeningContract:
    async def test_an_opened_bus_is_connected(self, bus: Bus) -> None:
        assert bus.is_connected

    async def test_a_bus_has_a_name_without_credentials(self, bus: Bus) -> None:
        assert bus.name
        assert "@" not in bus.name

    async def test_opening_again_is_allowed_and_changes_nothing(self, bus: Bus) -> None:
        await publish(bus, "first")
        await bus.open()
        await publish(bus, "second")
        assert contents(await take(bus, 2)) == ["first", "second"]

    async def test_another_node_finds_existing_commands(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        await publish(bus, "before")
        other = await another_bus()
        assert contents(await take(other, 1)) == ["before"]

    async def test_two_nodes_may_open_at_once(self, make_bus: MakeBus) -> None:
        one, other = make_bus(), make_bus()
        try:
            await asyncio.gather(one.open(), other.open())
            await publish(one, "hello")
            assert contents(await take(other, 1)) == ["hello"]
        finally:
            await asyncio.gather(one.close(), other.close())

    async def test_messages_of_a_closed_node_stay(self, bus: Bus, another_bus: AnotherBus) -> None:
        await publish(bus, "legacy")
        await bus.close()
        assert contents(await take(await another_bus(), 1)) == ["legacy"]

    async def test_closing_twice_is_allowed(self, bus: Bus) -> None:
        await bus.close()
        await bus.close()
        assert not bus.is_connected

    async def test_a_bus_that_was_never_opened_can_be_closed(self, make_bus: MakeBus) -> None:
        bus = make_bus()
        assert not bus.is_connected
        await bus.close()

    @pytest.mark.parametrize("operation", list(AFTER_CLOSE))
    async def test_a_closed_bus_is_unavailable(self, bus: Bus, operation: str) -> None:
        await publish(bus, "held")
        held = await take(bus, 1)
        await bus.close()
        with pytest.raises(BusUnavailable):
            await AFTER_CLOSE[operation](bus, held)
