"""Nodes are killed, stopped and cut off under load: nothing is lost, nothing stale is written."""

import asyncio
import random
import sys
from pathlib import Path

import asyncpg
import pytest

from tests.cluster.load import Load
from tests.cluster.nodes import running_nodes
from tests.effort import scaled
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.timer_requests import now, wait_until_dry
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(300)]

LEASE_SECONDS = 2
LONG_LEASE_SECONDS = 4
"""Long enough for a node on a busy machine to keep its leases."""
SLACK_SECONDS = 5
KILLS = scaled(5)


async def test_killing_one_of_three_nodes_again_and_again_loses_nothing(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    chance = random.Random(chosen_seed())
    receiver.reaction = Answer(delay_seconds=0.005)
    async with running_nodes(
        3, tmp_path, postgres_url, postgres_schema, LEASE_SECONDS=str(LEASE_SECONDS)
    ) as nodes:
        load = Load(receiver)
        async with asyncio.TaskGroup() as group:
            for node in nodes.all:
                group.create_task(load.keep_creating(node, [20, 150, 700, 1_500]))
            for _ in range(KILLS):
                await receiver.wait_for_total(len(receiver.requests) + chance.randint(1, 400))
                victim = chance.choice(nodes.all)
                await victim.kill()
                await receiver.wait_for_total(len(receiver.requests) + chance.randint(1, 200))
                await victim.start()
            load.stop()
        await load.wait_until_all_came()
        async with nodes[0].client() as api:
            counts = await wait_until_dry(api)
        repeated = load.repeated()
        sys.stdout.write(
            f"{len(load.due_at)} timers, {len(repeated)} repeated, latest {load.latest_seconds()}\n"
        )
        load.check_nothing_strange()
        assert counts["failed"] == counts["canceled"] == 0
        assert len(load.due_at) <= counts["completed"] <= len(load.due_at) + len(load.unknown)
        assert load.latest_seconds() < LEASE_SECONDS + SLACK_SECONDS
        await nodes.audit()


async def test_a_node_stopped_for_three_leases_writes_and_sends_nothing_stale(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(delay_seconds=0.05)
    async with running_nodes(
        2, tmp_path, postgres_url, postgres_schema, LEASE_SECONDS=str(LONG_LEASE_SECONDS)
    ) as nodes:
        stopped, other = nodes.all
        load = Load(receiver)
        creating = asyncio.create_task(load.keep_creating(other, [20, 150, 700, 1_500]))
        await receiver.wait_for_total(300)
        stopped.pause()
        await receiver.wait_until_read()
        stopped_at = now()
        # The arrival of these timers marks the end of three leases.
        marks = Load(receiver, "marks")
        await marks.create_many(
            [other], 8, 3_000 * LONG_LEASE_SECONDS, 3_000 * LONG_LEASE_SECONDS + 100
        )
        await other.wait_for_log("node.dead")
        await nodes.wait_until_spread([other])
        await marks.wait_until_all_came()
        stopped.resume()
        await stopped.wait_for_log("node.forgotten")
        await nodes.wait_until_spread()
        load.stop()
        await creating
        load.due_at |= marks.due_at
        await load.wait_until_all_came()
        load.check_nothing_strange()
        for target, requests in load.repeated().items():
            # Only callbacks under way when the node was stopped come a second time.
            first, *others = requests
            assert len(others) == 1, target
            assert first.arrived_at < stopped_at, target
        async with other.client() as api:
            counts = await wait_until_dry(api)
        assert counts["completed"] == len(load.due_at) + len(load.unknown)
        assert load.latest_seconds() < LONG_LEASE_SECONDS + SLACK_SECONDS
        await nodes.audit()


async def test_breaking_connections_again_and_again_repeats_nothing(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    """No process dies, so every timer is sent once."""
    receiver.reaction = Answer(delay_seconds=0.005)
    async with running_nodes(2, tmp_path, postgres_url, postgres_schema) as nodes:
        load = Load(receiver)
        database = await asyncpg.connect(postgres_url)
        async with asyncio.TaskGroup() as group:
            for node in nodes.all:
                group.create_task(load.keep_creating(node, [20, 150, 700, 1_500]))
            for _ in range(15):
                await receiver.wait_for_total(len(receiver.requests) + 50)
                await _break_connections(database, postgres_schema)
            load.stop()
        await database.close()
        await load.wait_until_all_came()
        async with nodes[0].client() as api:
            await wait_until_dry(api)
        assert load.repeated() == {}
        load.check_nothing_strange()
        await nodes.audit()


async def _break_connections(database: asyncpg.Connection, schema: str) -> None:
    """Break all connections of the nodes of this schema."""
    await database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
        f"duetime ({schema})",
    )
