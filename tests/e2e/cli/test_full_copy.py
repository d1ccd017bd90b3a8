"""`duetime export --full` is a complete copy that `duetime import` restores, on either store."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.command import Cli, run_command
from tests.real_server.databases import Database, PostgresDatabase, SqliteDatabase
from tests.real_server.server_process import ServerProcess

pytestmark = pytest.mark.e2e

FAR = "2090-01-01T00:00:00Z"
RELATIVE = {"id": "relative", "executeIn": "90m", "callbackUrl": "http://127.0.0.1:1/"}
ONCE = {
    "execute_at": FAR,
    "callback": {"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X-Key": "s3cret"}},
    "metadata": {"team": "shop"},
    "idempotency_key": "once",
}
WITH_LINE_BREAKS = (
    b'{"id":"pretty","executeAt":"2090-01-01T00:00:00Z","callbackUrl":"http://127.0.0.1:1/",'
    b'"payload":{\n  "big": 1180591620717411303424,\n  "float": 1.10\n}}'
)


async def make_timers_of_every_kind(api: httpx.AsyncClient, receiver: CallbackReceiver) -> None:
    """Two namespaces with timers of every status but executing, some with attempts."""
    receiver.script("/ok", Answer(200, b'{"ok": true}'))
    receiver.script("/fails", Answer(503, b"sorry, \xc3\xa4 maintenance\n"))
    options = {"numShards": 5, "retention": "700d", "retryPolicy": {"maxRetries": 1}}
    assert (await api.put("/api/v1/namespaces/orders", json=options)).is_success
    once = {"maxRetries": 0}
    later = {"maxRetries": 5, "initialInterval": "30d", "maxInterval": "30d"}
    later["maxRetryAttemptsDuration"] = "300d"
    for namespace in ("default", "orders"):
        for id, path, policy in (
            ("completed", "/ok", once),
            ("failed", "/fails", once),
            ("waits", "/fails", later),
        ):
            url = f"{receiver.url}{path}"
            timer = {"id": id, "executeIn": "1ms", "callbackUrl": url, "retryPolicy": policy}
            assert (await api.post("/api/v1/timers", json={**timer, "namespace": namespace})).text
    for id in ("canceled", "pending"):
        timer = {"id": id, "executeAt": FAR, "callbackUrl": "http://127.0.0.1:1/hook"}
        assert (await api.post("/api/v1/timers", json=timer)).is_success
    assert (await api.post("/api/v1/timers/default/canceled/cancel")).is_success
    assert (await api.post("/api/v1/timers", content=WITH_LINE_BREAKS)).is_success
    assert (await api.post("/api/v1/timers", json=RELATIVE)).is_success
    assert (await api.post("/timers", json=ONCE)).is_success
    await poll(lambda: attempted(api, "default"), lambda count: count == 3)
    await poll(lambda: attempted(api, "orders"), lambda count: count == 3)


async def attempted(api: httpx.AsyncClient, namespace: str) -> int:
    timers = (await api.get("/api/v1/timers", params={"namespace": namespace})).json()["timers"]
    return sum(bool(timer["attempts"]) for timer in timers if timer["status"] != "executing")


async def export(server: ServerProcess, directory: Path, name: str) -> list[str]:
    exported = await Cli(server, directory)(
        "export", "--all-namespaces", "--full", "--with-secrets", "--output", name
    )
    assert exported.status == 0, exported.errors
    assert exported.errors == "exported 11 timers of all 2 namespaces\n"
    return (directory / name).read_text().splitlines()


async def audited(directory: Path, database: Database) -> dict[str, Any]:
    finished = await run_command("audit", "--json", directory=directory, **database.settings)
    report = json.loads(finished.output)
    assert (finished.status, report["findings"]) == (0, []), report
    return dict(report["counts"])


async def test_a_copy_goes_from_sqlite_to_postgresql_and_back(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    databases: list[Database] = [
        SqliteDatabase(tmp_path / "first.db"),
        PostgresDatabase(postgres_url, postgres_schema),
        SqliteDatabase(tmp_path / "last.db"),
    ]
    async with ServerProcess(tmp_path, **databases[0].settings) as first:
        async with first.client() as api:
            await make_timers_of_every_kind(api, receiver)
        lines = await export(first, tmp_path, "0.ndjson")
    calls = len(receiver.requests)
    counts = await audited(tmp_path, databases[0])
    assert counts == {"pending": 6, "executing": 0, "completed": 2, "failed": 2, "canceled": 1}
    for number, database in enumerate(databases[1:], 1):
        async with ServerProcess(tmp_path, **database.settings) as server:
            imported = await Cli(server, tmp_path)("import", f"{number - 1}.ndjson")
            assert imported.status == 0, imported
            words = "6 pending, 2 completed, 2 failed and 1 canceled timers"
            assert f"restored: 2 namespaces, {words}" in imported.output
            assert await export(server, tmp_path, f"{number}.ndjson") == lines
            again = await Cli(server, tmp_path).data("import", f"{number - 1}.ndjson")
            assert (again["created"], again["existing"], again["conflicts"]) == (0, 11, 0)
            async with server.client() as api:
                await check_that_repeats_are_recognised(api)
        assert await audited(tmp_path, database) == counts
    # Nothing that had its turn before the copy was called again.
    assert len(receiver.requests) == calls


async def check_that_repeats_are_recognised(api: httpx.AsyncClient) -> None:
    assert (await api.post("/timers", json=ONCE)).status_code == 200
    relative = await api.post("/api/v1/timers", json=RELATIVE)
    assert relative.headers["timer-existence"] == "existing"
    pretty = (await api.get("/api/v1/timers/default/pretty")).content
    assert WITH_LINE_BREAKS[WITH_LINE_BREAKS.index(b'"payload"') : -1] in pretty
    failed = (await api.get("/api/v1/timers/orders/failed")).json()
    assert failed["attempts"][0]["answer"] == "sorry, ä maintenance\n"


async def test_a_restored_timer_that_is_overdue_fires_at_once(
    cli: Cli, api: httpx.AsyncClient, receiver: CallbackReceiver, tmp_path: Path
) -> None:
    timer = {"id": "late", "executeAt": FAR, "callbackUrl": f"{receiver.url}/late"}
    created = (await api.post("/api/v1/timers", json=timer)).json()
    assert (await cli("export", "--full", "--output", "copy.ndjson")).status == 0
    assert (await api.delete("/api/v1/timers/default/late")).is_success
    path = tmp_path / "copy.ndjson"
    past = path.read_text().replace(FAR, "2020-01-01T00:00:00Z")
    summary = await cli.data("import", "-", stdin=past)
    assert summary["created"] == 1, summary
    (request,) = await receiver.wait_for(1)
    assert request.headers["webhook-id"] == created["deliveryId"]
