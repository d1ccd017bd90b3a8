"""A bulk operation on the timers of an endpoint that hangs, against a real server."""

import asyncio
from pathlib import Path

import pytest

from tests.polling import poll
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, Json, v1_body

pytestmark = pytest.mark.e2e

OPERATIONS = "/api/v1/operations"
MANY = 300
A_DAY_MS = 86_400_000
TIMERS_CANCELED = 5_000


@on_every_database
async def test_no_timer_of_a_hanging_endpoint_escapes_a_cancel(
    tmp_path: Path, database: Database
) -> None:
    """Most timers are claimed by then, and wait for their turn or for an answer."""
    called = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await reader.read()
        writer.close()

    receiver = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/"
    more: Json = {
        "callbackTimeout": "2s",
        "retryPolicy": {"maxRetries": 9, "initialInterval": "1s", "maxInterval": "2s"},
    }
    async with (
        receiver,
        ServerProcess(tmp_path, **database.settings) as server,
        server.client() as api,
    ):

        async def counts() -> Json:
            found: Json = (await api.get("/api/v1/namespaces/default")).json()["counts"]
            return found

        due_at = in_ms(500)
        bodies = [v1_body(f"t{number}", url, due_at, **more) for number in range(MANY)]
        answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
        assert answer.status_code == 200, answer.text
        await called.wait()
        started = await api.post(OPERATIONS, json={"action": "cancel", "filter": {"endpoint": url}})
        assert (started.status_code, started.json()["matched"]) == (202, MANY), started.text
        answer = await poll(
            lambda: api.get(f"{OPERATIONS}/{started.json()['id']}"),
            lambda found: found.json()["status"] != "running",
        )
        ended = answer.json()
        assert (ended["status"], ended["changed"], ended["skipped"]) == ("completed", MANY, 0)
        assert (await counts())["canceled"] == MANY


@on_every_database
async def test_the_counts_include_every_timer_when_the_server_stops_in_between(
    tmp_path: Path, database: Database
) -> None:
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        due_at = in_ms(A_DAY_MS)
        for start in range(0, TIMERS_CANCELED, 1_000):
            ids = range(start, start + 1_000)
            bodies = [v1_body(f"t{id}", "http://127.0.0.1:9/", due_at) for id in ids]
            answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
            assert answer.status_code == 200, answer.text
        started = await api.post(OPERATIONS, json={"action": "cancel", "all": True})
        path = f"{OPERATIONS}/{started.json()['id']}"
    for stop in range(3):
        async with server.client() as api:
            await poll(
                lambda api=api: api.get(path),  # type: ignore[misc]
                lambda found, stop=stop: found.json()["scanned"] > stop * 1_000,  # type: ignore[misc]
            )
        assert await server.stop() == 0
        await server.start()
    async with server.client() as api:
        ended = await poll(lambda: api.get(path), lambda found: found.json()["status"] != "running")
    await server.stop()
    counts = {name: ended.json()[name] for name in ("matched", "scanned", "changed", "skipped")}
    assert counts == {
        "matched": TIMERS_CANCELED,
        "scanned": TIMERS_CANCELED,
        "changed": TIMERS_CANCELED,
        "skipped": 0,
    }
