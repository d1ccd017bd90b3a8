"""Several workers behind one port: a supervisor starts, replaces and stops them."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import httpx
import psutil
import pytest

from tests.polling import PATIENCE_SECONDS, poll
from tests.real_server.callback_receiver import CallbackReceiver, Hang
from tests.real_server.command import Cli, Command, run_command
from tests.real_server.server_process import API_KEY, LogEntry, ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, wait_for_status, wait_until_dry

pytestmark = pytest.mark.e2e

WORKERS = 2

Settings = dict[str, str]


@pytest.fixture
def shared(postgres_url: str, postgres_schema: str) -> Settings:
    """Settings of a store that processes can share."""
    return {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema, "LEASE_SECONDS": "3"}


@pytest.fixture
async def service(tmp_path: Path, shared: Settings) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path, WORKERS=str(WORKERS), **shared) as process:
        yield process


def worker_pids(service: ServerProcess) -> dict[int, int]:
    """The latest process of each worker."""
    started = (entry for entry in service.logs if entry["event"] == "worker.started")
    return {as_int(entry, "worker"): as_int(entry, "pid") for entry in started}


def as_int(entry: LogEntry, field: str) -> int:
    value = entry[field]
    assert isinstance(value, int)
    return value


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def wait_until_ended(pids: Iterable[int]) -> None:
    """Wait for the end of the processes, which comes a moment after they close standard error."""

    async def alive() -> list[int]:
        return [pid for pid in pids if is_alive(pid)]

    await poll(alive, lambda alive: not alive)


async def nodes_answering(service: ServerProcess, count: int) -> set[str]:
    """The nodes that answer on the port, once there are `count`."""
    nodes: set[str] = set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(nodes) < count:
            # Each request has a connection of its own, which the system gives to any worker.
            async with service.client() as api:
                answer = await api.get("/healthz")
                assert answer.status_code == 200, answer.text
                nodes.add(answer.json()["data"]["cluster"]["node"])
    return nodes


async def wait_for_roll(service: ServerProcess, event: str, *, after: int) -> None:
    os.kill(service.pid, signal.SIGHUP)
    await service.wait_for_log(event, after=after)


async def test_workers_share_the_port_and_the_work(
    service: ServerProcess, receiver: CallbackReceiver
) -> None:
    (started,) = [entry for entry in service.logs if entry["event"] == "service.started"]
    assert started["workers"] == WORKERS
    assert len(await nodes_answering(service, WORKERS)) == WORKERS
    async with service.client() as api:
        for number in range(40):
            await create_timer(api, f"{receiver.url}/{number}", in_ms(500))
        counts = await wait_until_dry(api)
    assert counts["completed"] == 40 == len(receiver.requests)
    assert {entry["worker"] for entry in service.logs if "worker" in entry} == {1, 2}


async def test_a_timer_is_explained_by_the_worker_that_owns_it(
    service: ServerProcess, tmp_path: Path
) -> None:
    """Whichever worker a connection reaches, the command finds the one that knows."""
    await nodes_answering(service, WORKERS)
    cli = Cli(service, tmp_path)
    async with service.client() as api:
        ids = [await create_timer(api, "http://127.0.0.1:1", in_ms(100_000)) for _ in range(8)]
    explanations = [json.loads((await cli("explain", str(id), "--json")).output) for id in ids]
    assert all(each["live"] and each["node"] == each["owner"] for each in explanations)


async def test_a_stop_ends_all_workers_in_order(service: ServerProcess) -> None:
    pids = worker_pids(service)
    assert await service.stop() == 0
    assert not any(map(is_alive, pids.values()))
    stopped = [e.get("worker") for e in service.logs if e["event"] == "service.stopped"]
    assert sorted(stopped[:-1], key=str) == [1, 2]
    assert stopped[-1] is None, "the supervisor is the last to end"
    assert "worker.died" not in {entry["event"] for entry in service.logs}
    assert not any("Traceback" in line for line in service.output)


async def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(
    service: ServerProcess, receiver: CallbackReceiver
) -> None:
    async with service.client() as api:
        ids = [await create_timer(api, f"{receiver.url}/{n}", in_ms(1_500)) for n in range(40)]
        seen = len(service.logs)
        victim = worker_pids(service)[2]
        os.kill(victim, signal.SIGKILL)
        died = await service.wait_for_log("worker.died", after=seen)
        assert (died["worker"], died["pid"], died["signal"]) == (2, victim, "SIGKILL")
    async with service.client() as api:
        # The other worker answers.
        late = await create_timer(api, f"{receiver.url}/late", in_ms(100))
    again = await service.wait_for_log("worker.started", after=seen)
    assert again["worker"] == 2
    async with service.client() as api:
        for timer_id in (*ids, late):
            await wait_for_status(api, timer_id, "completed")
    assert len({request.target for request in receiver.requests}) == 41
    assert len(await nodes_answering(service, WORKERS)) == WORKERS


async def test_workers_do_not_outlive_their_supervisor(service: ServerProcess) -> None:
    pids = worker_pids(service)
    # Returns once the workers have closed standard error, too.
    await service.kill()
    await wait_until_ended(pids.values())
    assert [e["worker"] for e in service.logs if e["event"] == "supervisor.lost"]
    stopped = [entry["worker"] for entry in service.logs if entry["event"] == "service.stopped"]
    assert sorted(map(str, stopped)) == ["1", "2"], "they stop in order"


async def test_sighup_replaces_the_workers_without_an_interruption(
    service: ServerProcess, tmp_path: Path
) -> None:
    before = worker_pids(service)
    (tmp_path / ".env").write_text("MAX_PAYLOAD_BYTES=10\n")
    rolled = asyncio.create_task(wait_for_roll(service, "service.rolled", after=len(service.logs)))
    answers = 0
    while not rolled.done():
        async with service.client() as api:
            assert (await api.get("/healthz")).status_code == 200
            answers += 1
    await rolled
    assert answers > 10
    after = worker_pids(service)
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert not any(map(is_alive, before.values()))
    body = {
        "execute_at": "2090-01-01T00:00:00Z",
        "callback": {"type": "http", "url": "http://127.0.0.1:9", "payload": "x" * 20},
    }
    async with service.client() as api:
        assert (await api.post("/timers", json=body)).status_code != 201
    assert "worker.died" not in {entry["event"] for entry in service.logs}


async def test_a_release_that_cannot_start_leaves_the_old_workers_alone(
    service: ServerProcess, tmp_path: Path
) -> None:
    before = worker_pids(service)
    (tmp_path / ".env").write_text("MAX_PAYLOAD_BYTES=much\n")
    seen = len(service.logs)
    await wait_for_roll(service, "service.roll_abandoned", after=seen)
    failed = await service.wait_for_log("worker.not_replaced", after=seen)
    assert (failed["worker"], failed["status"]) == (1, 2)
    assert str(failed["error"]).startswith("MAX_PAYLOAD_BYTES='much'")
    assert worker_pids(service) == before
    assert len(await nodes_answering(service, WORKERS)) == WORKERS


async def test_a_second_signal_ends_everything_at_once(
    tmp_path: Path, shared: Settings, receiver: CallbackReceiver
) -> None:
    receiver.script("/hangs", Hang())
    settings = {"WORKERS": "2", "SHUTDOWN_GRACE_SECONDS": "600", **shared}
    async with ServerProcess(tmp_path, **settings) as service:
        async with service.client() as api:
            await create_timer(api, f"{receiver.url}/hangs", in_ms(50))
            await receiver.wait_for(1)
        pids = worker_pids(service)
        os.kill(service.pid, signal.SIGTERM)
        await service.wait_for_log("service.stopping", matches=lambda e: "worker" not in e)
        assert await service.stop() == 128 + signal.SIGTERM
    assert not any(map(is_alive, pids.values()))


async def test_ctrl_c_stops_in_order_too(tmp_path: Path, shared: Settings) -> None:
    environ = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "LOG_FORMAT": "json", **shared}
    arguments = ("serve", "--port", "0", "--workers", "2")
    async with Command(*arguments, directory=tmp_path, **environ) as command:
        await command.error_line('"service.started"')
        assert await command.end(signal.SIGINT) == 0
    assert "Traceback" not in command.errors


async def test_a_database_that_is_away_is_reported_once(tmp_path: Path) -> None:
    url = "postgresql://user:secret@127.0.0.1:1/timers"
    finished = await run_command(
        *("serve", "--workers", "3", "--port", "0"),
        directory=tmp_path,
        API_KEY=API_KEY,
        DATABASE_URL=url,
        STARTUP_WAIT_SECONDS="0",
        LOG_FORMAT="json",
    )
    assert (finished.status, finished.output) == (1, "")
    (line,) = finished.errors.splitlines()
    assert "127.0.0.1:1" in line
    assert "secret" not in line


async def test_workers_are_allowed_what_their_supervisor_is(tmp_path: Path) -> None:
    """The database cannot be reached, so that nothing listens after all."""
    finished = await run_command(
        *("serve", "--workers", "2", "--port", "0", "--host", "0.0.0.0", "--insecure"),
        directory=tmp_path,
        AUTH="none",
        DATABASE_URL="postgresql://user:secret@127.0.0.1:1/timers",
        STARTUP_WAIT_SECONDS="0",
        LOG_LEVEL="error",
    )
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert "127.0.0.1:1" in line


async def test_workers_do_not_share_the_port_of_another_service(
    service: ServerProcess, tmp_path: Path, shared: Settings
) -> None:
    port = str(httpx.URL(service.url).port)
    for workers in ("1", "2"):
        finished = await run_command(
            *("serve", "--workers", workers, "--host", "127.0.0.1", "--port", port),
            directory=tmp_path,
            **{"API_KEY": API_KEY, "LOG_LEVEL": "error", **shared},
        )
        assert finished.status == 1
        (line,) = finished.errors.splitlines()
        assert f"port {port} is already in use" in line
