"""Watching a channel without consuming it."""

import asyncio
from contextlib import aclosing

import pytest

from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Bus, Channel
from duetime.testing.bus_contract.nodes import AnotherBus
from duetime.testing.bus_contract.steps import (
    PATIENCE_SECONDS,
    SHORT_SECONDS,
    contents,
    publish,
    see,
    see_until,
    take,
    watching,
)


@pytest.mark.asyncio
class WatchingContract:
    @pytest.mark.parametrize("channel", list(Channel))
    async def test_published_messages_can_be_watched(
        self, bus: Bus, another_bus: AnotherBus, channel: Channel
    ) -> None:
        other = await another_bus()
        async with watching(other, channel) as watch:
            await publish(bus, "first", "second", channel=channel)
            assert await see(watch, 2) == ["first", "second"]
            await publish(bus, "third", channel=channel)
            assert await see(watch, 1) == ["third"]

    async def test_a_watch_sees_only_later_messages(self, bus: Bus) -> None:
        await publish(bus, "earlier", channel=Channel.EVENTS)
        async with aclosing(bus.watch(Channel.EVENTS)) as watch:
            first = asyncio.ensure_future(anext(watch))
            await asyncio.wait({first}, timeout=4 * SHORT_SECONDS)
            assert not first.done()
            await publish(bus, "later", channel=Channel.EVENTS)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await first == b"later"

    @pytest.mark.parametrize("channel", list(Channel))
    async def test_the_last_messages_come_first_and_then_new_ones(
        self, bus: Bus, another_bus: AnotherBus, channel: Channel
    ) -> None:
        other = await another_bus()
        await publish(bus, *map(str, range(1, 6)), channel=channel)
        async with aclosing(other.watch(channel, last=3)) as watch:
            assert await see(watch, 3) == ["3", "4", "5"]
            await publish(bus, "6", "7", channel=channel)
            assert await see(watch, 2) == ["6", "7"]

    @pytest.mark.parametrize("held", [0, 2])
    async def test_there_may_be_fewer_messages_than_requested(self, bus: Bus, held: int) -> None:
        old = [f"old {number}" for number in range(held)]
        await publish(bus, "elsewhere", channel=Channel.EVENTS)
        await publish(bus, *old, channel=Channel.REJECTED)
        async with aclosing(bus.watch(Channel.REJECTED, last=1_000)) as watch:
            assert await see(watch, held) == old
            first = asyncio.ensure_future(anext(watch))
            await asyncio.wait({first}, timeout=4 * SHORT_SECONDS)
            assert not first.done()
            await publish(bus, "new", channel=Channel.REJECTED)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await first == b"new"

    @pytest.mark.parametrize("last", [1, 1_000])
    async def test_a_watch_that_starts_among_messages_sees_each_once(
        self, bus: Bus, another_bus: AnotherBus, last: int
    ) -> None:
        other = await another_bus()
        numbers = [str(number) for number in range(300)]
        await publish(bus, *numbers[:50], channel=Channel.EVENTS)
        async with asyncio.TaskGroup() as group:
            group.create_task(publish(bus, *numbers[50:], channel=Channel.EVENTS))
            async with aclosing(other.watch(Channel.EVENTS, last)) as watch:
                seen = await see_until(watch, numbers[-1])
        assert seen == numbers[-len(seen) :]
        assert len(seen) >= min(last, 300)

    async def test_looking_back_consumes_no_command(self, bus: Bus) -> None:
        await publish(bus, "held", "done", "waiting")
        held, done = await take(bus, 2)
        await bus.acknowledge([done])
        async with aclosing(bus.watch(Channel.COMMANDS, last=10)) as watch:
            seen = await see_until(watch, "waiting")
        assert seen[0] == "held"
        assert contents(await take(bus, 1)) == ["waiting"]
        await bus.acknowledge([held])

    async def test_a_watch_sees_only_its_channel(self, bus: Bus) -> None:
        async with watching(bus, Channel.REJECTED) as watch:
            await publish(bus, "command")
            await publish(bus, "event", channel=Channel.EVENTS)
            await publish(bus, "rejection", channel=Channel.REJECTED)
            assert await see(watch, 1) == ["rejection"]

    async def test_watching_consumes_nothing(self, bus: Bus) -> None:
        async with watching(bus, Channel.COMMANDS) as watch:
            await publish(bus, "for both")
            assert await see(watch, 1) == ["for both"]
        # The probes of `watching` come first.
        async with asyncio.timeout(PATIENCE_SECONDS):
            while contents(await take(bus, 1)) != ["for both"]:
                pass

    async def test_every_watch_sees_every_message(self, bus: Bus, another_bus: AnotherBus) -> None:
        other = await another_bus()
        async with (
            watching(bus, Channel.EVENTS) as one_watch,
            watching(other, Channel.EVENTS) as other_watch,
        ):
            await publish(bus, "for all", channel=Channel.EVENTS)
            assert await see(other_watch, 1) == ["for all"]
            # The first watch also saw the probes of the second.
            await see_until(one_watch, "for all")

    async def test_a_watch_of_a_closed_bus_ends(self, bus: Bus) -> None:
        async with watching(bus, Channel.EVENTS) as watch:
            waiting = asyncio.ensure_future(anext(watch))
            await asyncio.wait({waiting}, timeout=SHORT_SECONDS)
            await bus.close()
            with pytest.raises((BusUnavailable, StopAsyncIteration)):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await waiting
