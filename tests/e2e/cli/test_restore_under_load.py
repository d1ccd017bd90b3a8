"""A backup that is made while timers are created and fire, restored, audited and started again."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.polling import poll
from tests.postgres.fixtures import MakePostgres
from tests.real_server.api_connection import ApiConnection
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import run_command
from tests.real_server.printed_commands import run_printed_lines
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import connections_to, in_ms, timer_body

pytestmark = pytest.mark.e2e

CLIENTS = 4
FIRED_BEFORE = 150
DELAYS_MS = (400, 1_200, 20_000)


class Load:
    """Clients that create timers, most of which fire soon."""

    def __init__(self, receiver: CallbackReceiver) -> None:
        self._receiver = receiver
        self._stopped = False
        self.accepted: dict[str, str] = {}
        """Target of each id that a create was answered with."""

    async def keep_creating(self, connection: ApiConnection, client: int) -> None:
        number = 0
        while not self._stopped:
            target = f"/{client}/{number}"
            due_at = in_ms(DELAYS_MS[number % len(DELAYS_MS)])
            body = timer_body(self._receiver.url + target, due_at)
            answer = await connection.request("POST", "/timers", body)
            if answer.status == 201:
                self.accepted[answer.body["data"]["id"]] = target
            number += 1

    async def until_more_fired(self) -> None:
        before = len(self._receiver.requests)
        await self._receiver.wait_for_total(before + FIRED_BEFORE)

    async def around(
        self, server: ServerProcess, work: Callable[[], Awaitable[object]]
    ) -> dict[str, str]:
        """Do the work in the middle of the load. Answers the timers accepted before it."""
        async with connections_to(server, CLIENTS) as connections:
            creating = [
                asyncio.create_task(self.keep_creating(each, client))
                for client, each in enumerate(connections)
            ]
            await self.until_more_fired()
            before = dict(self.accepted)
            await work()
            await self.until_more_fired()
            self._stopped = True
            await asyncio.gather(*creating)
        return before


async def check_restored(
    directory: Path,
    receiver: CallbackReceiver,
    before: dict[str, str],
    settings: dict[str, str],
) -> None:
    """Nothing that was accepted before the backup is missing, and all of it fires in the end."""
    (directory / "ids.txt").write_text("\n".join(before))
    audit = await run_command(
        "audit", "--accepted", "ids.txt", "--json", directory=directory, **settings
    )
    document = json.loads(audit.output)
    assert (audit.status, document["findings"], document["checked"]["missing"]) == (0, [], [])
    assert document["counts"]["pending"] > 0

    node = directory / "restored"
    node.mkdir()
    async with ServerProcess(node, **settings) as server, server.client() as api:
        await receiver.wait_for_targets(set(before.values()))

        async def unfinished() -> int:
            answers = [
                await api.get("/timers", params={"status": status, "limit": 1})
                for status in ("pending", "executing")
            ]
            return sum(int(answer.json()["data"]["total"]) for answer in answers)

        await poll(unfinished, lambda count: count == 0)
    firings: dict[str, set[str]] = defaultdict(set)
    for request in receiver.requests:
        firings[request.target].add(request.headers["webhook-id"])
    assert all(len(firings[target]) == 1 for target in before.values())
    audit = await run_command("audit", "--json", directory=directory, **settings)
    assert json.loads(audit.output)["findings"] == []


async def test_a_file_backed_up_under_load_is_restored(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    settings = {"TIMER_DB_PATH": str(tmp_path / "timers.db")}

    async def back_up() -> None:
        saved = await run_command("backup", "copy.db", directory=tmp_path, **settings)
        assert saved.status == 0, saved.errors

    async with ServerProcess(tmp_path, **settings) as server:
        before = await Load(receiver).around(server, back_up)
        await server.kill()
    restored = await run_command("restore", "copy.db", "--force", directory=tmp_path, **settings)
    assert restored.status == 0, restored.errors
    await check_restored(tmp_path, receiver, before, settings)


async def test_a_schema_dumped_under_load_is_restored(
    tmp_path: Path, receiver: CallbackReceiver, make_postgres: MakePostgres
) -> None:
    with make_postgres() as database:
        settings = {"DATABASE_URL": database.url}

        async def back_up() -> None:
            assert await run_printed_lines("backup", tmp_path, database.url) == ["pg_dump"]

        async with ServerProcess(tmp_path, **settings) as server:
            before = await Load(receiver).around(server, back_up)
            await server.kill()
        programs = await run_printed_lines("restore", tmp_path, database.url)
        assert programs == ["psql", "pg_restore"]
        await check_restored(tmp_path, receiver, before, settings)
