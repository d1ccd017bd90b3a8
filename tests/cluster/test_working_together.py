"""A healthy cluster: every timer fires once, whichever node it was created on."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from tests.cluster.load import Load
from tests.cluster.nodes import running_nodes
from tests.real_server.api_connection import ApiConnection
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import wait_until_dry

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SLOW_SECONDS = 8
"""Time that a slow callback takes, much longer than a hand-over on a busy machine."""

NO_POLLS = "3600000"
"""Milliseconds between polls: so many that only a notification can wake a node in time."""


async def test_two_nodes_describe_their_cluster_and_fire_each_timer_once(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    async with running_nodes(2, tmp_path, postgres_url, postgres_schema) as nodes:
        names = {await _check_description(node) for node in nodes.all}
        assert len(names) == 2
        load = Load(receiver)
        await load.create_many(nodes.all, 1_000, 200, 1_500)
        await load.create_many(nodes.all, 500, 1_000, 1_000)
        await load.wait_until_all_came()
        async with nodes[0].client() as api:
            assert (await wait_until_dry(api))["completed"] == len(load.due_at)
        load.check_each_came_once()
        assert f"{len(load.due_at):,}" in await nodes.audit()


async def _check_description(node: ServerProcess) -> str:
    """The name of a node that is one of two."""
    async with node.client() as api:
        health = (await api.get("/healthz")).json()["data"]
    assert health["engine"]["shards_owned"] == 8
    cluster = health["cluster"]
    assert (cluster["members"], cluster["shards"]) == (2, 16)
    assert cluster["clock_skewed"] is False
    return str(cluster["node"])


async def test_a_node_is_notified_of_timers_created_on_another_node(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    async with running_nodes(
        3, tmp_path, postgres_url, postgres_schema, TIMER_POLLING_INTERVAL=NO_POLLS
    ) as nodes:
        load = Load(receiver)
        async with ApiConnection(nodes[0].url) as connection:
            for _ in range(60):
                await load.create(connection, 200)
        await load.wait_until_all_came()
        load.check_each_came_once()


async def test_a_lost_notification_delays_a_timer_by_one_poll(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    async with running_nodes(
        2, tmp_path, postgres_url, postgres_schema, TIMER_POLLING_INTERVAL="500"
    ) as nodes:
        load = Load(receiver)
        database = await asyncpg.connect(postgres_url)
        async with ApiConnection(nodes[0].url) as connection:
            for _ in range(5):
                await _end_listeners(database, postgres_schema)
                for _ in range(20):
                    await load.create(connection, 50)
        await load.wait_until_all_came()
        await database.close()
        load.check_each_came_once()


async def test_a_joining_node_gets_its_share_and_a_stopping_node_gives_it_back(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    # The lease is so long that only a real hand-over can be the reason.
    receiver.reaction = Answer(delay_seconds=0.01)
    async with running_nodes(
        2, tmp_path, postgres_url, postgres_schema, LEASE_SECONDS="300"
    ) as nodes:
        load = Load(receiver)
        creating = asyncio.create_task(load.create_many(nodes.all[:1], 1_000, 300, 4_000))
        await nodes.add()
        await nodes.wait_until_spread()
        assert await nodes[1].stop() == 0
        await nodes.wait_until_spread([nodes[0], nodes[2]])
        await creating
        await load.wait_until_all_came()
        load.check_each_came_once()
        await nodes.audit()


@pytest.mark.exclusive
async def test_slow_callbacks_make_no_other_timer_late_when_nodes_join_and_stop(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(delay_seconds=0.01)
    async with (
        CallbackReceiver() as slow_receiver,
        running_nodes(
            1,
            tmp_path,
            postgres_url,
            postgres_schema,
            LEASE_SECONDS="300",
            SHUTDOWN_GRACE_SECONDS="60",
        ) as nodes,
    ):
        slow_receiver.reaction = Answer(delay_seconds=SLOW_SECONDS)
        slow, quick = Load(slow_receiver, "slow"), Load(receiver)
        await slow.create_many(nodes.all, 64, 100, 200)
        await quick.create_many(nodes.all, 600, 500, SLOW_SECONDS * 1_000)
        await slow.wait_until_all_came()
        await nodes.add()
        await nodes.wait_until_spread()
        stopping = asyncio.create_task(nodes[0].stop())
        await nodes.wait_until_spread([nodes[1]])
        await quick.wait_until_all_came()
        assert await stopping == 0
        async with nodes[1].client() as api:
            counts = await wait_until_dry(api)
        assert counts["completed"] == len(slow.due_at) + len(quick.due_at)
        quick.check_each_came_once()
        slow.check_each_came_once()
        assert quick.latest_seconds() < SLOW_SECONDS / 4
        await nodes.audit()


async def test_a_rolling_restart_under_load_repeats_nothing(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(delay_seconds=0.005)
    async with running_nodes(3, tmp_path, postgres_url, postgres_schema) as nodes:
        load = Load(receiver)
        async with asyncio.TaskGroup() as group:
            for node in nodes.all:
                group.create_task(load.keep_creating(node, [20, 150, 700, 1_500]))
            for node in nodes.all:
                await receiver.wait_for_total(len(receiver.requests) + 150)
                assert await node.stop() == 0
                await node.start()
                await nodes.wait_until_spread()
            load.stop()
        await load.wait_until_all_came()
        assert load.repeated() == {}
        load.check_nothing_strange()
        assert nodes.events("timer.settlement_refused").total() == 0
        await nodes.audit()


async def _end_listeners(database: asyncpg.Connection, schema: str) -> None:
    """Break the connections on which the nodes of this schema listen."""
    await database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query ILIKE 'LISTEN%' AND query LIKE '%' || $1 || '%'",
        schema,
    )
