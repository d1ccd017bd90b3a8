"""`duetime copy`: everything moves, a service goes on with it, and wrong stores are refused."""

import json
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime.domain.errors import SchemaRefused
from duetime.domain.namespace import Namespace
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.connections import ANY_PLAN, connected
from duetime.stores.postgres.copying.target import opened_target
from duetime.stores.sqlite import SqliteStore
from duetime.testing.timers import make_timer
from tests.polling import poll
from tests.postgres.fixtures import dropped_schema
from tests.postgres.options import store_options
from tests.real_server.callback_receiver import Answer, CallbackReceiver, Hang
from tests.real_server.command import Command, run_command
from tests.real_server.copy_commands import audit, copied, copy, migrate
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import create_soon, create_timer, in_ms, wait_for_status
from tests.real_server.v1_requests import create_v1, get_v1, wait_for_v1

pytestmark = pytest.mark.e2e

KEYS = {"ENCRYPTION_KEYS": "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
FAR_MS = 3_600_000
MANY = 2_000
FILE = "timers.db"
ELSEWHERE = "http://127.0.0.2:9"


async def use_file(directory: Path, receiver: CallbackReceiver) -> dict[str, Any]:
    """Run a server on the file and kill it. Answers ids of timers of every status, and more that
    a copy must keep."""
    receiver.script("/failing", Answer(status=500))
    receiver.script("/hanging", Hang(), Answer())
    receiver.script("/new", Answer(body=b'{"ok": true}'))
    left: dict[str, Any] = {}
    async with ServerProcess(directory, **KEYS) as server, server.client() as api:
        options = {"numShards": 8, "maxPending": 1_000, "retention": "90d"}
        answer = await api.put("/api/v1/namespaces/orders", json=options)
        assert answer.is_success, answer.text
        secret = await api.post("/api/v1/namespaces/orders/secrets", json={})
        assert secret.status_code == 201, secret.text
        left["secrets"] = (await api.get("/api/v1/namespaces/orders/secrets")).json()
        created = await api.post(
            "/api/v1/keys", json={"name": "shop", "roles": ["write"], "namespaces": ["orders"]}
        )
        left["key"] = created.json()["key"]
        # Links and sessions of the Web UI stay behind.
        assert (await api.post("/api/v1/ui-links")).status_code == 201
        left["completed"] = await create_soon(api, f"{receiver.url}/completed")
        left["failed"] = await create_soon(api, f"{receiver.url}/failing")
        await wait_for_status(api, left["completed"], "completed")
        await wait_for_status(api, left["failed"], "failed")
        left["moved"] = await create_timer(api, f"{receiver.url}/moved", in_ms(FAR_MS))
        left["canceled"] = await create_timer(api, ELSEWHERE, in_ms(FAR_MS))
        left["operation"] = await operation(api, ELSEWHERE)
        await wait_for_status(api, left["canceled"], "canceled")
        text = "\N{SNOWMAN}\N{ROCKET} \x7f\u2028 \\u0000 'quoted'"
        await create_v1(
            api,
            "späte Bestellung",
            f"{receiver.url}/later",
            in_ms(FAR_MS),
            namespace="orders",
            payload={"text": text, "amount": 1.10},
            retryPolicy={"maxRetries": 7, "initialInterval": "3s"},
        )
        left["hanging"] = await create_soon(api, f"{receiver.url}/hanging")
        left["soon"] = await create_timer(api, f"{receiver.url}/soon", in_ms(4_000))
        await receiver.wait_for(1, lambda request: request.target == "/hanging")
        left["seen"] = await views(api, left)
        await server.kill()
    return left


async def operation(api: httpx.AsyncClient, endpoint: str) -> str:
    started = await api.post(
        "/api/v1/operations", json={"action": "cancel", "filter": {"endpoint": endpoint}}
    )
    assert started.is_success, started.text
    return str(started.json()["id"])


async def views(api: httpx.AsyncClient, left: dict[str, Any]) -> dict[str, Any]:
    """The timers that no attempt is about to change, and more, as users see them."""
    names = ("completed", "failed", "canceled", "moved")
    seen = {name: (await api.get(f"/timers/{left[name]}")).json()["data"] for name in names}
    return {
        **seen,
        "later": await get_v1(api, "späte Bestellung", "orders"),
        "namespace": (await api.get("/api/v1/namespaces/orders")).json(),
        "operation": (await poll_operation(api, left["operation"])),
    }


async def poll_operation(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    async def get() -> dict[str, Any]:
        document: dict[str, Any] = (await api.get(f"/api/v1/operations/{id}")).json()
        return document

    return await poll(get, lambda document: document["status"] != "running")


async def test_a_service_goes_on_where_the_copied_one_stopped(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    left = await use_file(tmp_path, receiver)
    target = ("--from", FILE, "--to", postgres_url, "--to-schema", postgres_schema)
    report = await copied(tmp_path, *target)
    assert report["equal"]
    assert report["counts"] == {
        "pending": 3, "executing": 1, "completed": 1, "failed": 1, "canceled": 1,
    }  # fmt: skip
    assert report["rows"]["credentials"] == 2
    assert report["rows"]["operations"] == 1
    assert report["rows"]["audit_log"] > 3
    again = await copied(tmp_path, *target, "--verify-only")
    assert (again["equal"], again["checksum"]) == (True, report["checksum"])
    assert (await copied(tmp_path, *target))["already_finished"]

    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema}
    node = tmp_path / "node"
    node.mkdir()
    async with ServerProcess(node, **settings, **KEYS) as server, server.client() as api:
        # Overdue by now, and interrupted: both fire, the second one as a repeat.
        await wait_for_status(api, left["soon"], "completed")
        await wait_for_status(api, left["hanging"], "completed")
        first, second = await receiver.wait_for(2, lambda each: each.target == "/hanging")
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert await views(api, left) == left["seen"]
        secrets = await api.get("/api/v1/namespaces/orders/secrets")
        assert secrets.json() == left["secrets"]
        shop = {"X-API-Key": left["key"]}
        body = {"namespace": "orders", "id": "new", "executeIn": "1ms"}
        created = await api.post(
            "/api/v1/timers", json={**body, "callbackUrl": f"{receiver.url}/new"}, headers=shop
        )
        assert created.status_code == 200, created.text
        await wait_for_v1(api, "new", "completed", namespace="orders")
        assert "webhook-signature" in receiver.of("/new")[0].headers
    assert await audit(tmp_path, **settings) == []
    assert len(receiver.of("/completed")) == len(receiver.of("/soon")) == 1


async def test_back_to_a_file_by_way_of_another_schema(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    left = await use_file(tmp_path, receiver)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        hours = [(hour, name, 7, 1) for hour in (4, 5) for name in ("a", "b", "c")]
        database.executemany("INSERT INTO lateness_counts VALUES (?, ?, ?, ?)", hours)
        paused = [("http://a:80", 5, "operator", "a deploy"), ("http://b:80", 6, "API_KEY", None)]
        database.executemany("INSERT INTO paused_endpoints VALUES (?, ?, ?, ?)", paused)
        database.commit()
    with dropped_schema(postgres_url) as other:
        first = ("--from", FILE, "--to", postgres_url, "--to-schema", postgres_schema)
        between = ("--from", postgres_url, "--from-schema", postgres_schema)
        second = (*between, "--to", postgres_url, "--to-schema", other)
        third = ("--from", postgres_url, "--from-schema", other, "--to", "back.db")
        reports = [await copied(tmp_path, *first, "--batch", "2")]
        async with connected(store_options(postgres_url, postgres_schema), ANY_PLAN) as database:
            await database.execute("INSERT INTO credentials VALUES ('ui-1', '{}', NULL)")
        reports += [
            await copied(tmp_path, *arguments, "--batch", "2") for arguments in (second, third)
        ]
    assert len({report["checksum"] for report in reports}) == 1
    assert [report["rows"]["lateness_counts"] for report in reports] == [6, 6, 6]
    assert [report["rows"]["credentials"] for report in reports] == [2, 2, 2]
    assert [report["rows"]["paused_endpoints"] for report in reports] == [2, 2, 2]
    with closing(sqlite3.connect(tmp_path / "back.db")) as database:
        assert database.execute("SELECT * FROM paused_endpoints ORDER BY 1").fetchall() == paused
    server = ServerProcess(tmp_path, TIMER_DB_PATH=str(tmp_path / "back.db"), **KEYS)
    async with server, server.client() as api:
        await wait_for_status(api, left["soon"], "completed")
        await wait_for_status(api, left["hanging"], "completed")
        assert await views(api, left) == left["seen"]
    assert await audit(tmp_path, TIMER_DB_PATH="back.db") == []


async def test_damaged_rows_stay_what_they_are(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    """A damaged byte must not turn into a callback that nobody asked for."""
    left = await use_file(tmp_path, receiver)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        for statement, name in (
            ("callback = CAST(replace(callback, 'http', x'ff') AS TEXT)", "moved"),
            ("callback = callback || char(0)", "soon"),
        ):
            database.execute(f"UPDATE timers SET {statement} WHERE id = ?", (left[name],))
        database.execute("UPDATE finished_timers SET last_error = 'a' || char(0) || 'b'")
        database.commit()
    target = ("--from", FILE, "--to", postgres_url, "--to-schema", postgres_schema)
    assert (await copied(tmp_path, *target))["equal"]
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema}
    node = tmp_path / "node"
    node.mkdir()
    async with ServerProcess(node, **settings, **KEYS) as server, server.client() as api:
        await wait_for_status(api, left["hanging"], "completed")
        failed = (await api.get(f"/timers/{left['failed']}")).json()["data"]
        assert failed["last_error"] == "a\N{REPLACEMENT CHARACTER}b"
        for name in ("moved", "soon"):
            assert (await api.get(f"/timers/{left[name]}")).status_code == 500
    assert receiver.of("/soon") == receiver.of("/moved") == []


async def test_a_difference_names_the_timers(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    left = await use_file(tmp_path, receiver)
    target = ("--from", FILE, "--to", postgres_url, "--to-schema", postgres_schema)
    await copied(tmp_path, *target)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("UPDATE timers SET delivery_id = '' WHERE id = ?", (left["moved"],))
        database.commit()
    finished = await copy(tmp_path, *target, "--verify-only", "--quiet")
    assert finished.status == 1
    assert "  default, pending: 2 rows in the source, 2 in the target" in finished.output
    assert f"  such as timers default/{left['moved']}\n" in finished.output
    assert finished.output.endswith("Nothing was changed. A new copy needs an empty target.\n")
    finished = await copy(tmp_path, *target, "--verify-only", "--quiet", "--json")
    document = json.loads(finished.output)
    assert (finished.status, document["equal"]) == (1, False)
    assert document["examples"] == [f"timers default/{left['moved']}"]


async def test_a_target_that_is_not_empty_is_refused(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    await migrate(tmp_path, TIMER_DB_PATH=FILE)
    store = PostgresStore(store_options(postgres_url, postgres_schema))
    await store.open()
    await store.add_namespace(Namespace("theirs", 2))
    await store.close()
    to = ("--to", postgres_url, "--to-schema", postgres_schema)
    finished = await copy(tmp_path, "--from", FILE, *to)
    assert finished.status == 1
    assert "is not empty: it has rows in namespaces, shards." in finished.errors
    assert "another schema by --to-schema" in finished.errors
    assert "password" not in finished.errors
    await store.open()
    assert [each.name for each in await store.namespaces()] == ["theirs"]
    await store.close()


async def test_the_beginning_of_another_copy_is_refused(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    """Also that of the same file, if a service has run on it since."""
    await migrate(tmp_path, TIMER_DB_PATH="other.db")
    to = ("--to", postgres_url, "--to-schema", postgres_schema)
    await use_file(tmp_path, receiver)
    await copied(tmp_path, "--from", FILE, *to)
    refused = await copy(tmp_path, "--from", "other.db", *to)
    assert refused.status == 1
    assert f"holds a copy of {tmp_path}/timers.db, and {tmp_path}/other.db" in refused.errors
    async with ServerProcess(tmp_path, **KEYS) as server:
        await server.stop()
    refused = await copy(tmp_path, "--from", FILE, *to)
    assert (refused.status, "was used since then" in refused.errors) == (1, True)
    compared = await copy(tmp_path, "--from", FILE, *to, "--verify-only")
    assert compared.status == 1
    assert "a service has run on one of them since" in compared.output
    assert "unfinished" not in compared.output
    assert not re.search("such as (clock|shards)", compared.output)


async def test_stores_in_use_are_refused(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    in_file, node = tmp_path / "file", tmp_path / "node"
    in_file.mkdir()
    node.mkdir()
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema, "LEASE_SECONDS": "1"}
    ours = ("--from", str(in_file / FILE))
    theirs = (postgres_url, "--from-schema", postgres_schema)
    async with ServerProcess(in_file) as server, ServerProcess(node, **settings):
        refused = await copy(tmp_path, *ours, "--to", postgres_url, "--to-schema", postgres_schema)
        assert refused.status == 1
        assert f"in use by another duetime process (pid {server.pid})" in refused.errors
        refused = await copy(
            tmp_path, "--from", *theirs, "--to", str(tmp_path / "new.db"), LEASE_SECONDS="1"
        )
        assert refused.status == 1
        assert "is in use by 1 node (" in refused.errors
        await server.stop()
        refused = await copy(tmp_path, *ours, "--to", postgres_url, "--to-schema", postgres_schema)
        assert refused.status == 1
        assert "is not empty" in refused.errors
        assert not (tmp_path / "new.db").exists()
    # The node was killed, and is still on the list of members.
    to = ("--to", "new.db")
    finished = await copy(tmp_path, "--from", *theirs, *to, "--quiet", LEASE_SECONDS="1")
    assert (finished.status, finished.errors) == (0, "")


async def test_ctrl_c_stops_a_copy_that_goes_on_later(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    store = SqliteStore(tmp_path / FILE)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    timers = [make_timer(f"timer-{n}", execute_at=in_ms(FAR_MS)) for n in range(MANY)]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])
    await store.close()
    target = ("--from", FILE, "--to", postgres_url, "--to-schema", postgres_schema)
    options = store_options(postgres_url, postgres_schema)

    async def copied_so_far() -> int:
        async with connected(options, ANY_PLAN) as connection:
            if await connection.fetchval("SELECT to_regclass('copies')") is None:
                return 0
            return await connection.fetchval("SELECT timers FROM copies") or 0

    async with Command("copy", *target, "--batch", "2", directory=tmp_path) as command:
        await poll(copied_so_far, lambda count: count > 0)
        status = await command.end(signal.SIGINT)
    assert status == 1
    assert command.errors.endswith("interrupted: run the same command again, and it goes on\n")
    assert 0 < await copied_so_far() < MANY
    report = await copied(tmp_path, *target)
    assert report["resumed_at"] > 0
    assert (report["copied"] + report["resumed_at"], report["equal"]) == (MANY, True)


@pytest.mark.parametrize(
    ("source", "target", "status", "message"),
    [
        ("memory:", "b.db", 2, "--from: timers in memory cannot be copied"),
        ("a.db", "./b.db", 2, "--to: is a file like --from: use `duetime backup`"),
        ("a.db", "sqlite:///a.db", 2, "--to: is the same store as --from"),
        ("a.db", "mysql://db/timers", 2, "--to: must be postgresql://"),
        ("a.db", "postgresql://db:x/timers", 2, "--to='postgresql://db:x/timers': "),
        ("a.db", "postgresql://db", 2, "with the name of a database"),
        ("missing.db", "postgresql://127.0.0.1:9/timers", 3, "there is no such file"),
        ("a.db", "postgresql://127.0.0.1:9/timers", 3, "is it running, and reachable?"),
        ("postgresql://127.0.0.1:9/timers", "b.db", 3, "is it running, and reachable?"),
    ],
)
async def test_wrong_urls(
    tmp_path: Path, source: str, target: str, status: int, message: str
) -> None:
    await migrate(tmp_path, TIMER_DB_PATH="a.db")
    finished = await copy(tmp_path, "--from", source, "--to", target)
    assert finished.status == status
    assert message in finished.errors
    assert finished.errors.count("\n") == 1
    assert sorted(path.suffix for path in tmp_path.glob("b.db*")) == []


async def test_other_settings_of_the_store_do_not_matter(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    """The command is run where the service is, whose settings name the source."""
    await migrate(tmp_path, TIMER_DB_PATH=FILE)
    (tmp_path / ".env").write_text(f"TIMER_DB_PATH={FILE}\nAPI_KEY={API_KEY}\n")
    finished = await copy(tmp_path, "--from", FILE, "--to", postgres_url, PG_SCHEMA=postgres_schema)
    assert (finished.status, finished.errors) == (0, "")
    assert "0 timers in " in finished.output
    assert ": both sides are equal.\n" in finished.output


async def test_no_service_starts_on_a_part_of_a_copy(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    options = store_options(postgres_url, postgres_schema)
    store = PostgresStore(options)
    await store.open()
    await store.close()
    async with opened_target(options) as target:
        await target.begin("old.db", "sqlite 1", in_ms(0))
    with pytest.raises(SchemaRefused, match=r"unfinished copy of old\.db"):
        await store.open()
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema, "API_KEY": API_KEY}
    settings |= {"HOST": "127.0.0.1", "PORT": "0"}
    for command in ("serve", "audit", "cluster"):
        finished = await run_command(command, directory=tmp_path, **settings)
        assert finished.status == 1
        assert "run the same `duetime copy` again" in finished.errors
