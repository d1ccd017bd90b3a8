"""Publishing: every message is stored, once if the broker can."""

import asyncio
from types import NoneType
from typing import ClassVar

import pytest

from duetime.domain.outcome import NotSent
from duetime.ports.bus import Bus, Channel
from duetime.testing.bus_contract.nodes import AnotherBus
from duetime.testing.bus_contract.steps import (
    contents,
    message,
    publish,
    publish_at_once,
    see,
    take,
    take_nothing,
    watching,
)

ODD_TEXTS = [
    "with spaces",
    " ",
    "100% %41 %s",
    "dots...and.more.",
    "*.>",
    "a\tb",
    "line\nbreak\r\n",
    "colon: value",
    "'quotes\" and \\",
    "\u00e9 \u6642\u9593 \U0001f570",
    "x" * 511,
]
"""Tenants and service calls are texts of up to 255 characters; a key joins one of each."""

BIG_BYTES = 60_000


@pytest.mark.asyncio
class PublishingContract:
    drops_repeats: ClassVar[bool] = True

    async def test_any_text_can_be_a_key(self, bus: Bus) -> None:
        for number, key in enumerate(ODD_TEXTS):
            for channel in Channel:
                await bus.publish(message(key, channel=channel, id=str(number), key=key))
        assert contents(await take(bus, len(ODD_TEXTS))) == ODD_TEXTS

    async def test_any_text_can_be_an_id(self, bus: Bus) -> None:
        ids = [variant for text in ODD_TEXTS for variant in (text, text + "2")]
        for id in ids:
            await bus.publish(message(id, id=id))
        assert contents(await take(bus, len(ids))) == ids

    @pytest.mark.parametrize(
        "data", [b"{}", bytes(range(256)), b"\r\n\r\n", b"x" * BIG_BYTES], ids=len
    )
    async def test_the_content_arrives_to_the_byte(self, bus: Bus, data: bytes) -> None:
        await bus.publish(message(data, id="1"))
        assert [command.data for command in await take(bus, 1)] == [data]

    async def test_hundreds_can_be_published_at_once(self, bus: Bus) -> None:
        published = [f"command {number}" for number in range(500)]
        await publish_at_once(bus, published)
        taken = await take(bus, 500)
        assert sorted(contents(taken)) == sorted(published)
        await bus.acknowledge(taken)
        await take_nothing(bus)

    async def test_big_messages_can_be_published_at_once(self, bus: Bus) -> None:
        big = [b"%02d" % number + b"x" * BIG_BYTES for number in range(50)]
        await asyncio.gather(*(bus.publish(message(data)) for data in big))
        assert sorted(command.data for command in await take(bus, 50)) == big

    async def test_a_message_that_may_no_longer_be_sent_is_not_stored(self, bus: Bus) -> None:
        async with watching(bus, Channel.EVENTS) as watch:
            answers = await asyncio.gather(
                bus.publish(message("first", channel=Channel.EVENTS), lambda: True),
                bus.publish(message("too late", channel=Channel.EVENTS), lambda: False),
                bus.publish(message("last", channel=Channel.EVENTS)),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [NoneType, NotSent, NoneType]
            assert sorted(await see(watch, 2)) == ["first", "last"]

    async def test_commands_wait_for_a_receiver(self, bus: Bus, another_bus: AnotherBus) -> None:
        await publish(bus, "early")
        await bus.close()
        later = await another_bus()
        assert contents(await take(later, 1)) == ["early"]

    @pytest.mark.parametrize("channel", [Channel.EVENTS, Channel.REJECTED])
    async def test_events_and_rejections_are_not_received_as_commands(
        self, bus: Bus, channel: Channel
    ) -> None:
        await publish(bus, "not a command", channel=channel)
        await take_nothing(bus)

    async def test_a_repeat_of_an_id_is_dropped_if_the_broker_can(
        self, bus: Bus, another_bus: AnotherBus
    ) -> None:
        other = await another_bus()
        event = message("event", channel=Channel.EVENTS, id="same", key="acme.call-1")
        async with watching(bus, Channel.EVENTS) as watch:
            await bus.publish(event)
            await bus.publish(event)
            await other.publish(event)
            await publish(bus, "end", channel=Channel.EVENTS)
            stored = 1 if self.drops_repeats else 3
            assert await see(watch, stored + 1) == ["event"] * stored + ["end"]

    async def test_the_same_id_on_another_channel_is_no_repeat(self, bus: Bus) -> None:
        async with watching(bus, Channel.REJECTED) as watch:
            for channel in Channel:
                await bus.publish(message("anywhere", channel=channel, id="same"))
            assert await see(watch, 1) == ["anywhere"]
        assert contents(await take(bus, 1)) == ["anywhere"]
