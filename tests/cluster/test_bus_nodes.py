"""Nodes that share a bus: each command goes to one of them, and each event is published once."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.brokers.bus_client import Command
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.running_broker import RunningBroker, bus_health, wait_until_all_acknowledged
from tests.cluster.nodes import Nodes, running_nodes
from tests.crash.announcements import (
    check_all_completed,
    check_each_is_stored_once,
    command_of,
)
from tests.real_server.timer_requests import in_ms
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TIMERS = int(os.environ.get("DUETIME_TEST_BUS_TIMERS", "2000"))
LEASE_SECONDS = "2"
ACK_WAIT_SECONDS = 2


async def test_commands_are_shared_and_events_published_once(
    tmp_path: Path, broker: RunningBroker, postgres_url: str, postgres_schema: str
) -> None:
    async with (
        running_nodes(2, tmp_path, postgres_url, postgres_schema, **broker.settings) as nodes,
        NatsBusClient(broker.url) as bus,
    ):
        commands = _commands(random.Random(1))
        await bus.send(list(commands.values()))
        await bus.book.wait_for_calls(commands)
        async with nodes[0].client() as api:
            await check_all_completed(api, TIMERS)
        received, published = await _totals(nodes)
        assert min(received) > 0, f"one node took all commands: {received}"
        assert (sum(received), sum(published)) == (TIMERS, TIMERS)
        await check_each_is_stored_once(bus, commands)
        await wait_until_all_acknowledged(bus)
        await nodes.audit()


async def test_killing_a_node_in_the_middle_loses_nothing(
    tmp_path: Path, broker: RunningBroker, postgres_url: str, postgres_schema: str
) -> None:
    chance = random.Random(chosen_seed())
    settings = {"LEASE_SECONDS": LEASE_SECONDS, **broker.settings}
    async with NatsBusClient(broker.url, reads=False) as preparing:
        await preparing.prepare_commands(ack_wait_seconds=ACK_WAIT_SECONDS)
    async with (
        running_nodes(2, tmp_path, postgres_url, postgres_schema, **settings) as nodes,
        NatsBusClient(broker.url) as bus,
    ):
        commands = _commands(chance)
        sending = asyncio.create_task(bus.send(list(commands.values())))
        await bus.book.wait_for_total(chance.randint(1, TIMERS // 2))
        killed, survivor = chance.sample(nodes.all, 2)
        await killed.kill()
        await sending
        await bus.book.wait_for_calls(commands)
        async with survivor.client() as api:
            await check_all_completed(api, TIMERS)
        await check_each_is_stored_once(bus, commands)
        await nodes.audit()


async def _totals(nodes: Nodes) -> tuple[list[int], list[int]]:
    """The commands received and the events published by each node."""
    received, published = [], []
    for node in nodes.all:
        async with node.client() as api:
            health = await bus_health(api)
        received.append(int(health["commands_received"]))
        published.append(int(health["events_published"]))
    return received, published


def _commands(chance: random.Random) -> dict[str, Command]:
    """Commands by call, due so evenly that a kill hits the middle."""
    span_ms = max(2_000, TIMERS / 2)
    return {
        call: command_of(call, in_ms(chance.uniform(0, span_ms)))
        for call in (f"call-{number}" for number in range(TIMERS))
    }
