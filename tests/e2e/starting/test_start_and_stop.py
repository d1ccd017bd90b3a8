"""The server starts, refuses to start, and stops."""

import asyncio
import signal
from pathlib import Path

import httpx
import pytest

from tests.real_server.callback_receiver import Answer, CallbackReceiver, Hang
from tests.real_server.command import Command, Finished, run_command
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import API_KEY, ServerDied, ServerProcess
from tests.real_server.timer_requests import (
    create_timer,
    get_timer,
    in_ms,
    wait_for_status,
    wait_until_dry,
)

pytestmark = pytest.mark.e2e


@on_every_database
async def test_a_stop_lets_callbacks_finish_and_loses_none(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    receiver.script("/under-way", Answer(200, delay_seconds=0.5))
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        under_way = await create_timer(api, f"{receiver.url}/under-way", in_ms(1_000))
        for number in range(30):
            await create_timer(api, f"{receiver.url}/later/{number}", in_ms(1_000 + 40 * number))
        await receiver.wait_for(1, lambda request: request.target == "/under-way")
        assert await server.stop() == 0
    fired_before = len(receiver.requests)
    assert fired_before < 31, "the server was meant to stop before the last timer"

    async with server, server.client() as api:
        settled = await get_timer(api, under_way)
        assert (settled["status"], settled["attempt"]) == ("completed", 1)
        counts = await wait_until_dry(api)
    assert counts["completed"] == 31 == len(receiver.requests)
    assert len({request.target for request in receiver.requests}) == 31
    assert {request.headers["timer-attempt"] for request in receiver.requests} == {"1"}
    assert not any("Traceback" in line for line in server.output)


@on_every_database
async def test_a_callback_that_outlasts_the_grace_is_repeated_after_the_restart(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    receiver.script("/hangs", Hang(), Answer(200))
    server = ServerProcess(tmp_path, SHUTDOWN_GRACE_SECONDS="0.2", **database.settings)
    await server.start()
    async with server.client() as api:
        timer_id = await create_timer(api, f"{receiver.url}/hangs", in_ms(50))
        await receiver.wait_for(1)
        assert await server.stop() == 0
    async with server, server.client() as api:
        timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert timer["status"] == "completed"
    first, second = receiver.of("/hangs")
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (first.headers["timer-attempt"], second.headers["timer-attempt"]) == ("1", "2")


@on_every_database
async def test_a_create_that_was_answered_survives_a_stop_at_once(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        timer_id = await create_timer(api, receiver.url, in_ms(500))
        assert await server.stop() == 0
        with pytest.raises(httpx.TransportError):
            await api.get(f"/timers/{timer_id}")
    async with server, server.client() as api:
        assert (await wait_for_status(api, timer_id, "completed"))["attempt"] == 1
    assert len(receiver.requests) == 1


async def test_a_second_process_on_the_same_file_is_refused(
    server: ServerProcess, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    finished = await serve(tmp_path, TIMER_DB_PATH=str(tmp_path / "timers.db"))
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert "timers.db is in use by another duetime process" in line
    assert f"pid {server.pid}" in line
    assert (await api.get("/healthz")).status_code == 200


async def test_a_port_in_use_is_reported_in_one_line(
    shared_server: ServerProcess, tmp_path: Path
) -> None:
    port = str(httpx.URL(shared_server.url).port)
    finished = await serve(tmp_path, TIMER_DB_PATH=str(tmp_path / "other.db"), PORT=port)
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert line == (
        f"cannot listen on 127.0.0.1:{port}: port {port} is already in use; "
        "choose another with --port or PORT"
    )


async def test_wrong_settings_are_reported_one_per_line(tmp_path: Path) -> None:
    finished = await serve(
        tmp_path, API_KEY="short", PORT="99999", MIN_DELAY_SECONDS="soon", LOG_LEVEL="loud"
    )
    assert finished.status == 2
    lines = finished.errors.splitlines()
    assert len(lines) == 4
    for name in ("API_KEY", "PORT", "MIN_DELAY_SECONDS", "LOG_LEVEL"):
        assert sum(name in line for line in lines) == 1
    assert "short" not in finished.errors, "a secret must not be shown"
    assert not list(tmp_path.iterdir()), "nothing may be written before the settings are right"


async def test_a_missing_key_is_reported_in_one_line(tmp_path: Path) -> None:
    finished = await run_command("serve", directory=tmp_path)
    assert finished.status == 2
    (line,) = finished.errors.splitlines()
    assert "API_KEY is missing" in line


@pytest.mark.parametrize("content", [b"this is no database\n" * 500, b"SQLite format 3\0" * 500])
async def test_a_file_that_is_no_database_is_reported_in_one_line(
    tmp_path: Path, content: bytes
) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(content)
    finished = await serve(tmp_path, TIMER_DB_PATH=str(garbage))
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert "garbage.db" in line
    assert garbage.read_bytes() == content, "a file that is not ours must stay as it is"


async def test_a_path_that_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finished = await serve(tmp_path, TIMER_DB_PATH=str(tmp_path / "file" / "timers.db"))
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert "timers.db" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_an_idle_server_at_once(tmp_path: Path, number: signal.Signals) -> None:
    environ = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0", "LOG_FORMAT": "json"}
    async with Command("serve", directory=tmp_path, **environ) as command:
        started = await command.error_line("service.started")
        url = started.split('"url":"')[1].split('"')[0]
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{url}/healthz")).status_code == 200
            async with asyncio.timeout(5):
                assert await command.end(number) == 0
    assert "Traceback" not in command.errors


async def serve(directory: Path, **environ: str) -> Finished:
    """Run a server that is expected to refuse its start."""
    environ = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0", **environ}
    finished = await run_command("serve", directory=directory, **environ)
    assert "Traceback" not in finished.errors + finished.output
    return finished


async def test_a_missing_directory_is_not_created(tmp_path: Path) -> None:
    """A mistyped path or a volume that is not mounted must not look like an empty service."""
    path = tmp_path / "not-mounted" / "timers.db"
    server = ServerProcess(tmp_path, TIMER_DB_PATH=str(path))
    with pytest.raises(ServerDied, match=r"the directory .*not-mounted does not exist"):
        await server.start()
    assert not path.parent.exists()


async def test_only_the_owner_can_read_the_database_files(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await create_timer(api, "http://127.0.0.1:9/", in_ms(3_600_000))
        files = list(tmp_path.glob("timers.db*"))
        assert {path.name for path in files} >= {"timers.db", "timers.db-wal"}
        assert {path.stat().st_mode & 0o077 for path in files} == {0}


async def test_a_failed_callback_is_logged(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        timer_id = await create_timer(api, "http://127.0.0.1:9/", in_ms(50))
        entry = await server.wait_for_log("timer.failed")
        assert (entry["level"], entry["id"]) == ("warning", timer_id)
        assert (entry["endpoint"], entry["error"]) == ("http://127.0.0.1:9", "connection refused")


@pytest.mark.parametrize(
    "options", [["--host", "127.0.0.1"], ["--host", "localhost"], ["--insecure"]]
)
async def test_no_key_is_allowed_on_this_machine_or_on_demand(
    tmp_path: Path, options: list[str]
) -> None:
    """The directory of the store does not exist, so that the server does not start after all."""
    finished = await run_command(
        *("serve", "--port", "0", *options),
        directory=tmp_path,
        AUTH="none",
        TIMER_DB_PATH=str(tmp_path / "nowhere" / "timers.db"),
        LOG_FORMAT="json",
    )
    assert finished.status == 1
    warning, problem = finished.errors.splitlines()
    assert '"auth.open"' in warning
    assert problem.endswith(f"the directory {tmp_path / 'nowhere'} does not exist")


async def test_a_misspelt_setting_in_the_environment_is_logged(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, RETENTION_DAY="5") as server:
        warning = await server.wait_for_log("settings.misspelt")
        assert warning["level"] == "warning"
        assert "did you mean 'RETENTION_DAYS'?" in str(warning["advice"])
