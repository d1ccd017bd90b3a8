"""Streams and consumers that an operator created on NATS JetStream."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from duetime.bus.jetstream.bus import JetStreamBus
from duetime.clock import SystemClock
from duetime.domain.errors import BusUnavailable
from duetime.nats import NatsOptions
from duetime.ports.bus import Channel, OutgoingMessage
from tests.brokers.nats_fixtures import MakeNats
from tests.integration.brokers.conftest import OpenBus

PATIENCE_SECONDS = 10.0
FIT: dict[str, Any] = {
    "durable_name": "duetime",
    "ack_policy": "explicit",
    "filter_subject": "timer.commands",
}


async def make_consumer(client: Client, subject: str, settings: dict[str, Any]) -> None:
    await client.jsm().add_stream(StreamConfig(name="OWN", subjects=[subject]))
    await set_consumer(client, settings)


async def set_consumer(client: Client, settings: dict[str, Any]) -> None:
    """Create or change the consumer. The library does not know all settings."""
    request = json.dumps({"stream_name": "OWN", "config": settings}).encode()
    answer = await client.request("$JS.API.CONSUMER.DURABLE.CREATE.OWN.duetime", request)
    assert "error" not in json.loads(answer.data), answer.data


async def consumer_settings(client: Client) -> dict[str, Any]:
    answer = await client.request("$JS.API.CONSUMER.INFO.OWN.duetime", b"")
    settings: dict[str, Any] = json.loads(answer.data)["config"]
    return settings


async def pass_commands(bus: JetStreamBus, count: int) -> None:
    """Assert that `count` commands get through, one after the other."""
    numbers = [b"%d" % number for number in range(count)]
    for data in numbers:
        await bus.publish(
            OutgoingMessage(channel=Channel.COMMANDS, id=str(uuid4()), key="acme.call", data=data)
        )
    taken: list[bytes] = []
    while len(taken) < count:
        received = await bus.receive(1_000, PATIENCE_SECONDS)
        assert received, f"only {len(taken)} of {count} commands came"
        await bus.acknowledge(received)
        taken += [command.data for command in received]
    assert taken == numbers


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"deliver_subject": "elsewhere"}, "it pushes to elsewhere (deliver_subject)"),
        ({"ack_policy": "none"}, "its ack_policy is none, not explicit"),
        ({"ack_policy": "all"}, "its ack_policy is all, not explicit"),
        ({"max_deliver": 5}, "it gives up a command after 5 deliveries (max_deliver)"),
        ({"headers_only": True}, "headers without content (headers_only)"),
        ({"filter_subject": None}, "its filter_subject is missing, not timer.commands"),
        ({"filter_subject": "timer.*"}, "its filter_subject is timer.*, not timer.commands"),
        ({"filter_subject": "timer.events"}, "its filter_subject is timer.events, not"),
        (
            {"filter_subject": None, "filter_subjects": ["timer.commands", "timer.events"]},
            "its filter_subject is timer.commands, timer.events, not timer.commands",
        ),
    ],
)
async def test_an_unusable_consumer_is_refused_and_left_unchanged(
    open_bus: OpenBus, client: Client, settings: dict[str, Any], problem: str
) -> None:
    await make_consumer(client, "timer.>", FIT | settings)
    before = await consumer_settings(client)

    with pytest.raises(BusUnavailable) as refusal:
        await open_bus()

    assert "the consumer duetime of the stream OWN cannot be used: " in refusal.value.message
    assert problem in refusal.value.message
    assert "delete it and Duetime creates it again" in refusal.value.message
    assert await consumer_settings(client) == before
    await client.jsm().delete_consumer("OWN", "duetime")
    await pass_commands(await open_bus(), 1)


@pytest.mark.parametrize("pattern", [None, "timer.*", "timer.>", ">"])
async def test_a_stream_with_only_commands_needs_no_filter(
    open_bus: OpenBus, client: Client, pattern: str | None
) -> None:
    await make_consumer(client, "timer.commands", FIT | {"filter_subject": pattern})

    await pass_commands(await open_bus(), 1)


async def test_the_limits_of_the_consumer_are_respected(open_bus: OpenBus, client: Client) -> None:
    limits = {"max_batch": 3, "max_expires": 100_000_000, "max_waiting": 1}
    await make_consumer(client, "timer.commands", FIT | limits)
    bus = await open_bus()

    assert not await bus.receive(1_000, 0.35)
    await pass_commands(bus, 50)


async def test_no_more_requests_are_open_than_the_consumer_allows(
    open_bus: OpenBus, client: Client
) -> None:
    await make_consumer(client, "timer.commands", FIT | {"max_batch": 3, "max_waiting": 1})
    bus = await open_bus()

    for _ in range(5):
        await pass_commands(bus, 1)
        # The earlier request is still open.
        assert not await bus.receive(1_000, 0.02)


async def test_lowered_limits_apply_once_they_are_known(open_bus: OpenBus, client: Client) -> None:
    await make_consumer(client, "timer.commands", FIT)
    bus = await open_bus()
    await set_consumer(client, FIT | {"max_batch": 3})

    with pytest.raises(BusUnavailable, match="exceeded maxrequestbatch of 3"):
        await bus.receive(1_000, PATIENCE_SECONDS)

    await bus.open()
    await pass_commands(bus, 10)


async def test_the_limits_of_the_server_are_respected(make_nats: MakeNats, tmp_path: Path) -> None:
    streams = f'jetstream {{ store_dir: "{tmp_path}", limits: {{ max_request_batch: 3 }} }}'
    bus = JetStreamBus(
        NatsOptions(url=make_nats(jetstream=False, configuration=streams).url), SystemClock()
    )
    await bus.open()

    await pass_commands(bus, 10)
    await bus.close()


async def test_a_message_on_another_subject_is_never_a_command(
    open_bus: OpenBus, client: Client
) -> None:
    await make_consumer(client, "timer.>", FIT)
    bus = await open_bus()
    await set_consumer(client, FIT | {"filter_subject": "timer.>"})
    await client.jetstream().publish("timer.events", b"no command")

    await pass_commands(bus, 1)

    assert not await bus.receive(10, 0.05)
    await client.jsm().delete_consumer("OWN", "duetime")
    assert (await client.jsm().stream_info("OWN")).state.messages == 2


@pytest.mark.parametrize("channel", Channel)
async def test_a_stream_without_acknowledgements_is_refused(
    open_bus: OpenBus, client: Client, channel: Channel
) -> None:
    own = StreamConfig(name="OWN", subjects=[channel], no_ack=True)
    await client.jsm().add_stream(own)

    with pytest.raises(BusUnavailable) as refusal:
        await open_bus()

    assert f"the stream OWN of {channel} acknowledges nothing" in refusal.value.message
    assert (await client.jsm().stream_info("OWN")).config.no_ack
