"""A pause holds on every node and in every worker."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.cluster.nodes import SHARDS, running_nodes
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, wait_for_v1

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PROPAGATION_MS = 5_000
"""Time after which every node knows a pause, also on a busy machine; two seconds are promised."""

TIMERS = [f"timer-{number}" for number in range(2 * SHARDS)]


async def is_paused(api: httpx.AsyncClient, endpoint: str) -> bool:
    listed = (await api.get("/api/v1/endpoints")).json()["endpoints"]
    return any(each["endpoint"] == endpoint and each["paused"] for each in listed)


async def waiting(api: httpx.AsyncClient, endpoint: str) -> int:
    listed = (await api.get("/api/v1/endpoints")).json()["endpoints"]
    return sum(each["waiting"] for each in listed if each["endpoint"] == endpoint)


async def change(api: httpx.AsyncClient, word: str, endpoint: str) -> None:
    answer = await api.post(f"/api/v1/endpoints/{word}", json={"endpoint": endpoint})
    assert answer.is_success, answer.text


async def test_a_pause_on_one_node_holds_on_the_other_and_for_one_that_joins(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(body=b'{"ok": true}')
    async with (
        running_nodes(2, tmp_path, postgres_url, postgres_schema) as nodes,
        nodes[0].client() as first,
        nodes[1].client() as second,
    ):
        await change(first, "pause", receiver.url)
        await poll(lambda: is_paused(second, receiver.url), bool)
        due_at = in_ms(500)
        for id in TIMERS:
            await create_v1(first, id, receiver.url, due_at)
        apis = (first, second)

        async def all_waiting() -> int:
            counts = await asyncio.gather(*(waiting(api, receiver.url) for api in apis))
            return sum(counts)

        await poll(all_waiting, lambda count: count == len(TIMERS))
        await nodes[0].kill()
        await nodes.add()
        await nodes.wait_until_spread(nodes.all[1:])
        async with nodes[2].client() as third:
            assert await is_paused(third, receiver.url)
            assert receiver.requests == []
            await change(third, "resume", receiver.url)
            for id in TIMERS:
                await wait_for_v1(third, id, "completed")
    assert len(receiver.requests) == len(TIMERS), "once each"


async def test_a_pause_holds_in_all_workers(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(body=b'{"ok": true}')
    async with running_nodes(0, tmp_path, postgres_url, postgres_schema, WORKERS="2") as nodes:
        node = await nodes.add()
        async with node.client() as api:
            await change(api, "pause", receiver.url)
            for id in TIMERS:
                await create_v1(api, id, receiver.url, in_ms(PROPAGATION_MS))
            other = receiver.url.replace("127.0.0.1", "localhost")
            await create_v1(api, "other", other, in_ms(PROPAGATION_MS + 500))
            await wait_for_v1(api, "other", "completed")
            assert len(receiver.requests) == 1, "the other endpoint is called as usual"
            await change(api, "resume", receiver.url)
            for id in TIMERS:
                await wait_for_v1(api, id, "completed")
    assert len(receiver.requests) == 1 + len(TIMERS)
