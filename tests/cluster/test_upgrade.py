"""An upgrade without downtime: nodes of an earlier version and new ones on one schema."""

import asyncio
from pathlib import Path

import httpx
import pytest

from duetime.stores.postgres import schema
from tests.cluster.earlier_version import check_out
from tests.cluster.load import Load
from tests.cluster.nodes import Nodes, running_nodes
from tests.polling import poll
from tests.postgres.options import store_options
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import run_command
from tests.real_server.server_process import ServerDied, ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, wait_until_dry

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DELAYS_MS = (300, 1_500, 4_000)
TIMERS_PER_PHASE = 150


async def test_old_and_new_nodes_work_side_by_side(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    """Migrated while the old node serves and fires, joined by a new node, left by the old one."""
    earlier = check_out(tmp_path / "earlier")
    options = store_options(postgres_url, postgres_schema)
    async with running_nodes(0, tmp_path, postgres_url, postgres_schema) as nodes:
        old = await nodes.add(**earlier)
        await nodes.wait_until_spread()
        before, newest = await schema.check(options)
        assert before is not None
        assert before < newest, "choose an earlier version with an earlier schema"
        load = Load(receiver)
        creating = [asyncio.create_task(load.keep_creating(old, DELAYS_MS)) for _ in range(2)]
        await more(load)

        await migrate(tmp_path, postgres_url, postgres_schema)
        assert await schema.check(options) == (newest, newest)
        await more(load)

        new = await nodes.add()
        await nodes.wait_until_spread()
        creating += [asyncio.create_task(load.keep_creating(new, DELAYS_MS)) for _ in range(2)]
        await more(load)
        await cancel_across(old, new, receiver)
        await more(load)

        assert await old.stop() == 0
        await nodes.wait_until_spread([new])
        await more(load)
        load.stop()
        await asyncio.gather(*creating)
        await load.wait_until_all_came()
        async with new.client() as api:
            await wait_until_dry(api)
        # Nobody died, so nothing may come twice.
        load.check_each_came_once()
        await nodes.audit()
        await check_old_does_not_start_again(nodes, earlier)


async def more(load: Load) -> None:
    """Wait until many more timers were created, and fired."""
    created = len(load.due_at)

    async def look() -> tuple[int, int]:
        return len(load.due_at), len(load.received())

    await poll(look, lambda seen: min(seen) >= created + TIMERS_PER_PHASE)


async def migrate(directory: Path, url: str, name: str) -> None:
    finished = await run_command("migrate", directory=directory, DATABASE_URL=url, PG_SCHEMA=name)
    assert finished.status == 0, finished.errors


async def cancel_across(old: ServerProcess, new: ServerProcess, receiver: CallbackReceiver) -> None:
    """Timers that one version created, changed and canceled by the other."""
    async with old.client() as by_old, new.client() as by_new:
        for creator, changer in ((by_old, by_new), (by_new, by_old)):
            id = await create_timer(creator, f"{receiver.url}/canceled", in_ms(60_000))
            moved = {"execute_at": "2100-01-01T00:00:00Z"}
            assert (await changer.put(f"/timers/{id}", json=moved)).status_code == 200
            assert await status_of(creator, id) == "pending"
            assert (await changer.delete(f"/timers/{id}")).status_code == 200
            assert await status_of(creator, id) == "canceled"
    assert receiver.of("/canceled") == []


async def status_of(api: httpx.AsyncClient, id: str) -> str:
    return str((await api.get(f"/timers/{id}")).json()["data"]["status"])


async def check_old_does_not_start_again(nodes: Nodes, earlier: dict[str, str]) -> None:
    """An old node that runs may stay, but the old version does not start on the new schema."""
    with pytest.raises(ServerDied, match="start a newer release"):
        await nodes.add(**earlier)
