"""`duetime backup` beside a busy server, `duetime restore`, and files that no command opens."""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.polling import poll
from tests.real_server.api_connection import ApiConnection
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import Command, Finished, run_command, run_shell
from tests.real_server.databases import Database
from tests.real_server.server_process import API_KEY, DUETIME, ServerProcess
from tests.real_server.timer_requests import (
    connections_to,
    count_timers,
    create_timer,
    in_ms,
    timer_body,
    wait_for_status,
)

pytestmark = pytest.mark.e2e

CLIENTS = 8
CREATED_BEFORE = 400
PAYLOAD = {"payload": "x" * 5_000}


async def document(*arguments: str, directory: Path, **environ: str) -> dict[str, Any]:
    finished = await run_command(*arguments, "--json", directory=directory, **environ)
    assert (finished.status, finished.errors) == (0, "")
    result: dict[str, Any] = json.loads(finished.output)
    return result


async def keep_creating(connection: ApiConnection, answered: list[str]) -> None:
    while True:
        body = timer_body("http://127.0.0.1:9/", in_ms(3_600_000), callback=PAYLOAD)
        answer = await connection.request("POST", "/timers", body)
        assert answer.status == 201
        answered.append(answer.body["data"]["id"])


async def test_a_backup_under_load_has_every_timer_answered_before_it(
    server: ServerProcess, database: Database, tmp_path: Path
) -> None:
    answered: list[str] = []

    async def created() -> int:
        return len(answered)

    async with connections_to(server, CLIENTS) as connections:
        creating = [asyncio.create_task(keep_creating(each, answered)) for each in connections]
        await poll(created, lambda count: count >= CREATED_BEFORE)
        before = list(answered)
        saved = await document("backup", "copy.db", directory=tmp_path, **database.settings)
        during = len(answered)
        for task in creating:
            task.cancel()
        await asyncio.gather(*creating, return_exceptions=True)
    assert len(before) <= saved["counts"]["pending"] <= during
    assert saved["rows"]["timers"] == saved["counts"]["pending"] < during
    assert saved["bytes"] == (tmp_path / "copy.db").stat().st_size

    elsewhere = {"TIMER_DB_PATH": str(tmp_path / "elsewhere.db")}
    restored = await document("restore", "copy.db", directory=tmp_path, **elsewhere)
    assert restored["rows"] == saved["rows"]
    (tmp_path / "ids.txt").write_text("\n".join(before))
    audit = await document("audit", "--accepted", "ids.txt", directory=tmp_path, **elsewhere)
    assert (audit["findings"], audit["checked"]["missing"]) == ([], [])
    assert audit["counts"] == saved["counts"]
    assert server.is_running


async def test_a_restored_store_fires_what_was_pending_at_the_backup(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    server = ServerProcess(tmp_path, **database.settings)
    async with server, server.client() as api:
        fired = await create_timer(api, f"{receiver.url}/fired", in_ms(3_000))
        later = await create_timer(api, f"{receiver.url}/later", in_ms(3_600_000))
        finished = await run_command("backup", "copy.db", directory=tmp_path, **database.settings)
        assert finished.status == 0
        assert finished.output.startswith(f"Backed up {tmp_path}/timers.db to copy.db, ")
        assert "pending: 2\n" in finished.output
        await wait_for_status(api, fired, "completed")
        await api.delete(f"/timers/{later}")
        lost = await create_timer(api, f"{receiver.url}/lost", in_ms(3_600_000))
        refused = await run_command(
            "restore", "copy.db", "--force", directory=tmp_path, **database.settings
        )
        assert refused.status == 1
        assert f"in use by another duetime process (pid {server.pid})" in refused.errors
        assert await server.stop() == 0
    before = (tmp_path / "timers.db").read_bytes()
    for option in ("--dry-run", "--force"):
        told = await run_command(
            "restore", "copy.db", option, directory=tmp_path, **database.settings
        )
        assert (told.status, told.errors) == (0, "")
        assert f"{tmp_path}/timers.db" in told.output.splitlines()[0]
        assert "pending: 2\n" in told.output
        assert "1 timer will fire at once when the service starts.\n" in told.output
        assert "Timers that fired after the backup fire again" in told.output
        assert ((tmp_path / "timers.db").read_bytes() == before) is (option == "--dry-run")
    async with server, server.client() as api:
        await receiver.wait_for(2, lambda request: request.target == "/fired")
        await wait_for_status(api, fired, "completed")
        assert (await count_timers(api))["pending"] == 1
        await wait_for_status(api, later, "pending")
        assert (await api.get(f"/timers/{lost}")).status_code == 404
    first, second = receiver.of("/fired")
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


async def test_ctrl_c_ends_a_backup_and_leaves_nothing(tmp_path: Path) -> None:
    settings = {"TIMER_DB_PATH": "timers.db"}
    await run_command("migrate", directory=tmp_path, **settings)
    with closing(sqlite3.connect(tmp_path / "timers.db")) as database:
        database.execute("CREATE TABLE ballast (content BLOB)")
        database.executemany("INSERT INTO ballast VALUES (zeroblob(1000000))", [()] * 60)
        database.commit()

    async def has_started() -> bool:
        partial = tmp_path / "copy.db.partial"
        return (tmp_path / "copy.db").exists() or (partial.exists() and partial.stat().st_size > 0)

    async with Command("backup", "copy.db", directory=tmp_path, **settings) as command:
        await poll(has_started, bool)
        status = await command.end(signal.SIGINT)
    if status:
        assert (status, command.errors) == (1, "interrupted: nothing was changed\n")
    assert (tmp_path / "copy.db").exists() is (status == 0)
    assert not (tmp_path / "copy.db.partial").exists()


async def test_a_disk_that_takes_no_more_leaves_nothing(tmp_path: Path) -> None:
    await run_command("migrate", directory=tmp_path, TIMER_DB_PATH="timers.db")
    output = await run_shell(
        f"ulimit -f 100; TIMER_DB_PATH=timers.db {DUETIME} backup copy.db 2>&1; echo status $?",
        tmp_path,
    )
    assert output.startswith(f"cannot copy timers.db to {tmp_path}/copy.db.partial: the disk")
    assert output.endswith("\nstatus 1\n")
    assert not list(tmp_path.glob("copy.db*"))


@pytest.mark.parametrize("command", ["backup", "restore"])
async def test_stores_without_a_file_of_ours_have_their_own_ways(
    tmp_path: Path, command: str
) -> None:
    url = "postgresql://timers:very-secret@db.example/prod?sslmode=require"
    finished = await run_command(command, "copy.dump", directory=tmp_path, DATABASE_URL=url)
    assert (finished.status, finished.output) == (2, "")
    lines = [line for line in finished.errors.splitlines() if line.startswith("  ")]
    programs = {"backup": ["pg_dump"], "restore": ["psql", "pg_restore"]}
    assert [line.split()[0] for line in lines] == programs[command]
    for line in lines:
        assert "'postgresql://timers@db.example:5432/prod?sslmode=require'" in line
    assert "secret" not in finished.errors
    finished = await run_command(command, "c.db", directory=tmp_path, DATABASE_URL="memory:")
    assert finished.status == 2
    assert finished.errors == "timers are kept in memory: there is no file to copy\n"
    assert list(tmp_path.iterdir()) == []


async def test_there_is_nothing_to_back_up_before_the_first_start(tmp_path: Path) -> None:
    finished = await run_command("backup", "copy.db", directory=tmp_path, TIMER_DB_PATH="none.db")
    assert finished.status == 3
    assert finished.errors == "cannot open none.db: there is no such file\n"


@pytest.mark.parametrize("arguments", [["backup", "copy.db"], ["audit"]])
async def test_the_file_of_dev_is_named_where_the_one_of_serve_is_missing(
    tmp_path: Path, arguments: list[str]
) -> None:
    """This is what a newcomer meets who has just tried `duetime dev`."""
    dev = {"TIMER_DB_PATH": "duetime-dev.db"}
    await run_command("migrate", directory=tmp_path, **dev)
    finished = await run_command(*arguments, directory=tmp_path)
    assert finished.status == 3
    assert finished.errors == (
        "cannot open duetime.db: there is no such file; `duetime dev` keeps its timers in "
        f"duetime-dev.db: TIMER_DB_PATH=duetime-dev.db duetime {' '.join(arguments)}\n"
    )
    finished = await run_command(*arguments, directory=tmp_path, **dev)
    assert finished.status == 0
    finished = await run_command(*arguments, directory=tmp_path, TIMER_DB_PATH="other.db")
    assert finished.errors == "cannot open other.db: there is no such file\n"


async def test_a_quiet_backup_says_nothing_unless_it_fails(tmp_path: Path) -> None:
    settings = {"TIMER_DB_PATH": "timers.db"}
    await run_command("migrate", directory=tmp_path, **settings)
    for command in (["backup", "copy.db"], ["restore", "copy.db", "--force"]):
        finished = await run_command(*command, "--quiet", directory=tmp_path, **settings)
        assert finished == (0, "", "")
    refused = await run_command("backup", "copy.db", "--quiet", directory=tmp_path, **settings)
    assert refused.status == 1
    assert "--force" in refused.errors


@pytest.mark.parametrize("command", ["serve", "dev", "migrate", "audit"])
async def test_no_command_takes_an_unfinished_copy_for_a_store(
    tmp_path: Path, command: str
) -> None:
    """The pages of a copy whose program was killed before it wrote the schema."""
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.executescript("CREATE TABLE pages (a); DROP TABLE pages")
    before = (tmp_path / "copy.db").read_bytes()
    finished = await opened_by(command, tmp_path)
    assert finished.status == 1
    assert "copy.db is not empty, but has no schema of Duetime" in finished.errors
    assert "duetime restore" in finished.errors
    assert (tmp_path / "copy.db").read_bytes() == before


async def opened_by(command: str, directory: Path) -> Finished:
    settings = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0"}
    if command == "dev":
        return await run_command("dev", "--db", "copy.db", directory=directory, **settings)
    return await run_command(command, directory=directory, TIMER_DB_PATH="copy.db", **settings)


async def test_a_backup_leaves_the_reserve_of_the_service(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        await server.stop()
    environ = {"TIMER_DB_PATH": "timers.db", "DISK_RESERVE_BYTES": str(2**50)}
    refused = await run_command("backup", "copy.db", directory=tmp_path, **environ)
    assert refused.status == 1
    assert "to the service: make room, or choose another disk" in refused.errors
