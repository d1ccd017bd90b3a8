"""Commands that read the store itself: `migrate`, `cluster` and `audit`."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import httpx
import pytest

from duetime.domain.namespace import Namespace
from duetime.ports.inspection import AuditFinding
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.testing import make_timer
from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import Command, Finished, run_command
from tests.real_server.databases import Database, on_every_database, on_postgresql
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, wait_for_status

pytestmark = pytest.mark.e2e

UP_TO_DATE = re.compile(r"schema is up to date \(version [0-9]+\)\n")
UNKNOWN_ID = "01980000-0000-7000-8000-000000000000"

Settings = dict[str, str]


@pytest.fixture
def store(database: Database) -> Settings:
    """The settings that name the store; there is no API key."""
    return database.settings


@contextmanager
def sqlite_file(directory: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(directory / "timers.db"))
    try:
        yield connection
    finally:
        connection.close()


async def audit(directory: Path, *arguments: str, **environ: str) -> tuple[int, dict[str, object]]:
    finished = await run_command("audit", "--json", *arguments, directory=directory, **environ)
    assert finished.errors == ""
    document = json.loads(finished.output)
    assert isinstance(document, dict)
    return finished.status, document


def refusal(finished: Finished) -> str:
    """The single line of a command that did nothing."""
    assert finished.output == ""
    (line,) = finished.errors.splitlines()
    return line


@on_every_database
async def test_a_store_is_migrated_once(tmp_path: Path, store: Settings) -> None:
    finished = await run_command("migrate", "--check", directory=tmp_path, **store)
    assert finished.status == 1
    missing = finished.output.splitlines()
    assert missing == [f"missing migration {n}" for n in range(1, len(missing) + 1)]
    assert finished.errors == "there is no schema yet: run `duetime migrate`\n"
    finished = await run_command("migrate", "--check", "--json", directory=tmp_path, **store)
    assert finished.status == 1
    checked = json.loads(finished.output)
    assert (checked["version"], checked["newest"]) == (0, len(missing))
    assert (checked["applied"], len(checked["missing"])) == ([], len(missing))
    assert not list(tmp_path.iterdir()), "a check changes nothing"
    finished = await run_command("audit", directory=tmp_path, **store)
    assert finished.status == 3
    assert refusal(finished)

    finished = await run_command("migrate", directory=tmp_path, **store)
    up_to_date = f"schema is up to date (version {len(missing)})"
    applied = [line.replace("missing", "applied") for line in missing]
    assert (finished.status, finished.output.splitlines()) == (0, [*applied, up_to_date])
    for arguments in (["migrate"], ["migrate", "--check"]):
        finished = await run_command(*arguments, directory=tmp_path, **store)
        assert (finished.status, finished.output) == (0, f"{up_to_date}\n")
    assert (await audit(tmp_path, **store))[0] == 0


async def test_a_newer_schema_is_refused(tmp_path: Path, store: Settings) -> None:
    await run_command("migrate", directory=tmp_path, **store)
    with sqlite_file(tmp_path) as connection:
        connection.pragma("user_version", 99)
    for arguments in (["migrate"], ["migrate", "--check"]):
        finished = await run_command(*arguments, directory=tmp_path, **store)
        assert finished.status == 1
        assert refusal(finished).startswith("the schema has version 99, but this release")
    finished = await run_command("audit", directory=tmp_path, **store)
    assert finished.status == 1
    assert "has schema version 99" in refusal(finished)


@pytest.mark.parametrize("command", ["migrate", "migrate --check", "audit", "serve"])
async def test_a_file_from_before_the_first_release_is_refused(
    tmp_path: Path, store: Settings, command: str
) -> None:
    with sqlite_file(tmp_path) as connection:
        connection.pragma("journal_mode", "wal")
        connection.execute("CREATE TABLE timers (row_id INTEGER PRIMARY KEY)")
        connection.pragma("user_version", 2)
    before = (tmp_path / "timers.db").read_bytes()
    given = {**store, "API_KEY": "k" * 32, "PORT": "0"}
    finished = await run_command(*command.split(), directory=tmp_path, **given)
    assert finished.status == 1
    assert "from before the first release" in finished.errors + finished.output
    assert "start with a new file" in finished.errors + finished.output
    assert (tmp_path / "timers.db").read_bytes() == before


async def test_a_database_from_before_the_first_release_is_refused(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        f"CREATE SCHEMA {postgres_schema};"
        f"CREATE TABLE {postgres_schema}.schema_version AS"
        " SELECT generate_series(1, 8) AS version;"
        f"CREATE TABLE {postgres_schema}.pending_timers (created_at bigint)"
    )
    await connection.close()
    store = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema}
    finished = await run_command("migrate", directory=tmp_path, **store)
    assert finished.status == 1
    assert "is from before the first release" in refusal(finished)


@pytest.mark.parametrize("command", ["audit", "migrate", "cluster"])
async def test_a_database_that_is_away_is_reported_in_one_line(
    tmp_path: Path, command: str
) -> None:
    url = "postgresql://user:secret@127.0.0.1:1/timers"
    finished = await run_command(command, directory=tmp_path, DATABASE_URL=url)
    assert finished.status == 3
    line = refusal(finished)
    assert "127.0.0.1:1" in line
    assert "secret" not in line


@pytest.mark.parametrize("content", [None, b"this is no database\n" * 500])
async def test_a_file_that_cannot_be_audited_is_reported_in_one_line(
    tmp_path: Path, store: Settings, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "timers.db").write_bytes(content)
    finished = await run_command("audit", directory=tmp_path, **store)
    assert finished.status == 3
    assert "timers.db" in refusal(finished)
    assert [path.name for path in tmp_path.iterdir()] == (["timers.db"] if content else [])


@on_every_database
async def test_an_audit_finds_the_same_beside_the_service_and_after_it(
    tmp_path: Path, store: Settings, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path, **store) as server:
        async with server.client() as api:
            fired = [await create_timer(api, receiver.url, in_ms(100)) for _ in range(5)]
            later = [await create_timer(api, receiver.url, in_ms(3_600_000)) for _ in range(3)]
            for timer_id in fired:
                await wait_for_status(api, timer_id, "completed")
        (tmp_path / "ids.txt").write_text("\n".join([*fired, f"default\t{later[0]}", ""]))
        beside = await audit(tmp_path, "--accepted", "ids.txt", **store)
        migrated = await run_command("migrate", directory=tmp_path, **store)
        assert migrated.status == 0
        assert UP_TO_DATE.fullmatch(migrated.output)
        assert await server.stop() == 0
    after = await audit(tmp_path, "--accepted", "ids.txt", **store)
    assert beside == after
    assert beside == (
        0,
        {
            "accepted": 8,
            "forgotten": 0,
            "counts": {"pending": 3, "executing": 0, "completed": 5, "failed": 0, "canceled": 0},
            "overdue": 0,
            "findings": [],
            "checked": {"keys": 6, "missing": [], "in_several_states": []},
        },
    )
    finished = await run_command("audit", directory=tmp_path, **store)
    assert (finished.status, finished.errors) == (0, "")
    first, *_ = finished.output.splitlines()
    assert re.fullmatch(r"store: (/.+\.db|postgresql://.+)", first)
    assert "pending: 3\n" in finished.output
    assert finished.output.endswith("Every timer that was accepted is in exactly one state.\n")
    async with server:
        pass


@on_every_database
async def test_the_audit_reports_missing_timers(tmp_path: Path, store: Settings) -> None:
    await run_command("migrate", directory=tmp_path, **store)
    (tmp_path / "ids.txt").write_text(f"{UNKNOWN_ID}\nother\tname of its own\n")
    status, document = await audit(tmp_path, "--accepted", "ids.txt", **store)
    assert status == 1
    assert document["checked"] == {
        "keys": 2,
        "missing": [f"default/{UNKNOWN_ID}", "other/name of its own"],
        "in_several_states": [],
    }
    finished = await run_command("audit", "--accepted", "ids.txt", directory=tmp_path, **store)
    assert finished.status == 1
    assert f"missing: default/{UNKNOWN_ID}\n" in finished.output


@on_postgresql
async def test_the_cluster_is_shown_to_people_and_programs(tmp_path: Path, store: Settings) -> None:
    async with ServerProcess(tmp_path, WORKERS="2", **store) as server:
        await wait_for_members(tmp_path, store, 2)
        finished = await run_command("cluster", directory=tmp_path, **store)
        assert (finished.status, finished.errors) == (0, "")
        lines = finished.output.splitlines()
        assert lines[0] == "2 members, 16 shards"
        members = [
            dict(zip(lines[2].split("\t"), row.split("\t"), strict=True)) for row in lines[3:5]
        ]
        port = httpx.URL(server.url).port
        assert {httpx.URL(member["url"]).port for member in members} == {port}
        assert sorted(int(member["shards"]) for member in members) == [8, 8]
        assert await server.stop() == 0
    document = await wait_for_members(tmp_path, store, 0)
    assert [shard["owner"] for shard in document["shards"]] == [None] * 16
    finished = await run_command("cluster", directory=tmp_path, **store)
    assert finished.output.startswith("0 members, 16 shards, 16 without an owner")


@on_postgresql
async def test_the_cluster_is_watched_as_it_changes(tmp_path: Path, store: Settings) -> None:
    async with ServerProcess(tmp_path, LEASE_SECONDS="2", **store) as server:
        async with Command("cluster", "--watch", directory=tmp_path, **store) as command:
            await command.line("1 member, 16 shards")
            first = await command.line(" alive\t")
            await command.line("1 member, 16 shards")
            second = await command.line(" alive\t")
            assert first != second, "the beat has moved"
            server.pause()
            await command.line(" still for ")
            server.resume()
            await command.line(" alive")
            assert await command.end(signal.SIGINT) == 0
        assert "Traceback" not in command.errors


@on_postgresql
async def test_health_describes_the_cluster(tmp_path: Path, store: Settings) -> None:
    async with ServerProcess(tmp_path, **store) as server:
        finished = await run_command("health", "--server", server.url, directory=tmp_path)
    assert finished.status == 0
    told = dict(line.split(": ", 1) for line in finished.output.splitlines() if ": " in line)
    assert (told["cluster.members"], told["cluster.shards"]) == ("1", "16")
    assert told["cluster.clock_skewed"] == "false"


async def wait_for_members(directory: Path, store: Settings, count: int) -> dict[str, Any]:
    """The cluster once it has so many members, each with its share of the shards or none."""

    async def cluster() -> dict[str, Any]:
        finished = await run_command("cluster", "--json", directory=directory, **store)
        assert (finished.status, finished.errors) == (0, "")
        document: dict[str, Any] = json.loads(finished.output)
        return document

    def is_spread(document: dict[str, Any]) -> bool:
        owned = {member["shards_owned"] for member in document["members"]}
        return len(document["members"]) == count and len(owned) <= 1

    return await poll(cluster, is_spread)


@pytest.mark.parametrize(
    ("damage", "problem", "count"),
    [
        ("DELETE FROM live_timers", "timers without a state: they never fire", 2),
        ("DELETE FROM timers", "states whose timer is gone", 2),
        ("UPDATE counts SET count = 7", "wrong counts", 1),
        (
            "UPDATE live_timers SET status = 1, epoch = 0, claimed_at = 1;"
            " UPDATE counts SET status = 1",
            "executing timers whose owner is gone and that its successor did not take over",
            2,
        ),
        (
            "UPDATE live_timers SET status = 1, epoch = 99, claimed_at = 1;"
            " UPDATE counts SET status = 1",
            "executing timers of an epoch that their shard never had",
            2,
        ),
        ("UPDATE live_timers SET timer_uuid = x'00'", "live timers with the state of another", 2),
        ("DELETE FROM shards", "timers of a shard that does not exist", 2),
        ("DELETE FROM namespaces", "timers of a namespace that does not exist", 2),
        ("UPDATE live_timers SET execute_at = due_at + 1", "timers that are due before", 2),
        (
            "UPDATE live_timers SET due_at = 1, execute_at = 1",
            "overdue timers of shards that nobody owns",
            2,
        ),
        (
            "INSERT INTO finished_timers SELECT NULL, row_id, namespace, timer_uuid, created_at,"
            " updated_at, execute_at, due_at, 2, 1, 0, 1, 1, NULL, NULL, NULL FROM live_timers;"
            " INSERT INTO counts VALUES ('default', 2, 2)",
            "timers in more than one state",
            2,
        ),
    ],
)
async def test_what_is_wrong_with_a_file_is_found(
    tmp_path: Path, damage: str, problem: str, count: int
) -> None:
    path = tmp_path / "timers.db"
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default"))
    shards = {state.shard: state.epoch for state in await store.shards()}
    await store.release_shards(await store.claim_shards(shards, owner="a"))
    timers = [make_timer(id, execute_at=in_ms(3_600_000)) for id in ("one", "two")]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])
    await store.close()
    assert (await findings_in(path)) == {}
    with sqlite_file(tmp_path) as connection:
        connection.execute(damage)
    findings = await findings_in(path)
    (found,) = [name for name in findings if name.startswith(problem)]
    assert findings[found].count == count
    assert len(findings[found].examples) == count


async def test_findings_fail_the_command(tmp_path: Path, store: Settings) -> None:
    async with ServerProcess(tmp_path, **store) as server, server.client() as api:
        timer_id = await create_timer(api, "https://orders.example/due", in_ms(3_600_000))
        assert await server.stop() == 0
    with sqlite_file(tmp_path) as connection:
        connection.execute("DELETE FROM live_timers; DELETE FROM counts")
    problem = "timers without a state: they never fire"
    status, document = await audit(tmp_path, **store)
    assert status == 1
    assert document["findings"] == [
        {"problem": problem, "count": 1, "examples": [f"default/{timer_id}"]}
    ]
    finished = await run_command("audit", directory=tmp_path, **store)
    assert (finished.status, finished.errors) == (1, "")
    assert finished.output.endswith(f"\n{problem}\t1\tdefault/{timer_id}\n")
    assert "exactly one state" not in finished.output


async def findings_in(path: Path) -> dict[str, AuditFinding]:
    inspector = SqliteInspector(path)
    await inspector.open()
    try:
        report = await inspector.audit(in_ms(0))
    finally:
        await inspector.close()
    return {finding.problem: finding for finding in report.findings}
