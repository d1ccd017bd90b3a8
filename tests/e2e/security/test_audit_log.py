"""The audit log of a real server: durable, whole under load, and followed across a restart."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime.service.security.audit_log import WAIT_SECONDS
from tests.polling import poll
from tests.postgres.relay import Relay
from tests.real_server.command import Cli, Command
from tests.real_server.databases import Database, PostgresDatabase, on_every_database
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import v1_body

pytestmark = pytest.mark.e2e

NOBODY = "http://127.0.0.1:9/nobody"
LOG = "/api/v1/audit-log"
HOUR_MS = 3_600_000
MARGIN_SECONDS = 20.0
"""Time by which a busy machine may be late; a statement that hangs takes longer than both."""


async def create(api: httpx.AsyncClient, id: str) -> None:
    answer = await api.post("/api/v1/timers", json=v1_body(id, NOBODY, in_ms(HOUR_MS)))
    assert answer.status_code == 200, answer.text


async def cancel(api: httpx.AsyncClient, id: str) -> None:
    answer = await api.post(f"/api/v1/timers/default/{id}/cancel")
    assert answer.status_code == 200, answer.text


async def entries(api: httpx.AsyncClient, **filters: str) -> list[dict[str, Any]]:
    """All entries, over all pages, newest first."""
    found: list[dict[str, Any]] = []
    params = {**filters, "limit": "1000"}
    while True:
        answer = await api.get(LOG, params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["entries"]
        if page["nextCursor"] is None:
            return found
        params["cursor"] = page["nextCursor"]


@on_every_database
async def test_an_answered_change_is_in_the_log_after_a_kill(
    tmp_path: Path, database: Database
) -> None:
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        await create(api, "one")
        await cancel(api, "one")
        assert (await api.delete("/api/v1/timers/default/none")).status_code == 404
        await server.kill()
    async with server, server.client() as api:
        shown = [
            (each["actor"], each["action"], each["target"], each["result"], each["address"])
            for each in await entries(api)
        ]
    assert shown == [
        ("API_KEY", "timer.delete", "none", "TIMER_NOT_FOUND", "127.0.0.1"),
        ("API_KEY", "timer.cancel", "one", "ok", "127.0.0.1"),
    ]


@pytest.mark.slow
@on_every_database
async def test_every_cancel_of_a_killed_server_that_was_answered_is_in_the_log(
    tmp_path: Path, database: Database
) -> None:
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    count, answered = 600, set()
    enough = asyncio.Event()
    async with server.client() as api:
        lines = "\n".join(
            json.dumps(v1_body(f"t{n}", NOBODY, in_ms(HOUR_MS))) for n in range(count)
        )
        assert (await api.post("/api/v1/timers/import", content=lines)).json()["created"] == count

        async def cancel_some(first: int) -> None:
            for number in range(first, count, 20):
                try:
                    await cancel(api, f"t{number}")
                except httpx.HTTPError:
                    return
                answered.add(f"t{number}")
                if len(answered) == count // 3:
                    enough.set()

        async with asyncio.TaskGroup() as group:
            for first in range(20):
                group.create_task(cancel_some(first))
            await enough.wait()
            await server.kill()
    assert len(answered) < count
    async with server, server.client() as api:
        found = await entries(api, action="timer.cancel")
    targets = [each["target"] for each in found]
    assert answered <= set(targets)
    assert len(set(targets)) == len(targets)


@on_every_database
async def test_recorded_creates_are_whole(tmp_path: Path, database: Database) -> None:
    server = ServerProcess(tmp_path, AUDIT_CREATES="all", **database.settings)
    async with server, server.client() as api:
        body = {"execute_at": "2090-01-01T00:00:00Z", "callback": {"type": "http", "url": NOBODY}}
        answers = await asyncio.gather(*(api.post("/timers", json=body) for _ in range(50)))
        ids = {answer.json()["data"]["id"] for answer in answers}
        found = await entries(api, action="timer.create")
    assert {each["target"] for each in found} == ids
    assert {each["address"] for each in found} == {"127.0.0.1"}


async def test_follow_shows_changes_across_a_restart_until_ctrl_c(
    tmp_path: Path, server: ServerProcess
) -> None:
    environ = {"DUETIME_URL": server.url, "DUETIME_API_KEY": API_KEY}
    async with server.client() as api:
        await create(api, "before")
        await cancel(api, "before")
        following = Command("audit-log", "--follow", directory=tmp_path, **environ)
        async with following:
            assert "default/before  by API_KEY  from 127.0.0.1" in await following.line()
            await create(api, "one")
            await cancel(api, "one")
            await following.line("default/one")
            await server.stop()
            assert "waiting for it" in await following.error_line()
            await server.start()
            await following.error_line("the server is back")
            await create(api, "two")
            await cancel(api, "two")
            await following.line("default/two")
            assert await following.end(signal.SIGINT) == 0
    assert following.errors == ""
    shown = [line for line in following.lines if "timer.cancel" in line]
    assert len(shown) == 3, "each entry once"


@on_every_database
async def test_entries_are_forgotten_after_their_retention(
    tmp_path: Path, database: Database
) -> None:
    server = ServerProcess(tmp_path, **database.settings)
    async with server, server.client() as api:
        await create(api, "one")
        await cancel(api, "one")
        assert len(await entries(api)) == 1
    server = ServerProcess(tmp_path, AUDIT_RETENTION_DAYS="0.000001", **database.settings)
    async with server, server.client() as api:
        assert await poll(lambda: entries(api), lambda found: not found) == []


async def test_the_command_lists_the_log(cli: Cli, server: ServerProcess) -> None:
    async with server.client() as api:
        await create(api, "one")
        await cancel(api, "one")
    finished = await cli("audit-log", "--since", "1h", "--action", "timer.cancel")
    assert finished.status == 0
    assert "default\tone\tok" in finished.output
    assert finished.output.endswith("1 entry\n")


async def test_a_hanging_database_holds_up_nobody_and_gets_the_entry_later(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    with Relay(postgres_url) as relay:
        database = PostgresDatabase(relay.url, postgres_schema)
        settings = {**database.settings, "PG_STATEMENT_TIMEOUT_SECONDS": "60"}
        async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
            relay.freeze()
            # Refused without a look at the database.
            async with asyncio.timeout(WAIT_SECONDS + MARGIN_SECONDS):
                answer = await api.put("/api/v1/timers/default/one", content=b"no JSON")
            assert answer.status_code == 400
            line = await server.wait_for_log("audit.entry_unwritten")
            assert (line["action"], line["target"]) == ("timer.update", "one")
            relay.heal()
            await server.wait_for_log("audit.caught_up")
            (entry,) = await entries(api)
            assert (entry["target"], entry["result"]) == ("one", "INVALID_INPUT")
