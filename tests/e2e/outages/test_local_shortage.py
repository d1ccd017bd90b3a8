"""A server that runs out of descriptors or ports: nobody is blamed, and every timer fires."""

import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import Json, create_timer, in_ms, wait_for_status
from tests.real_server.v1_requests import TIMERS, get_v1, v1_body

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[3]
OK = b'{"ok": true}'


def with_few_descriptors(directory: Path) -> ServerProcess:
    server = ServerProcess(directory)
    server.open_files = 256
    return server


async def create_batch(api: httpx.AsyncClient, count: int, url: str) -> None:
    """Timers that are due at the same instant and have one attempt each."""
    due_at = in_ms(1_000)
    bodies = [
        v1_body(f"t{number}", url, due_at, retryPolicy={"maxRetries": 0}) for number in range(count)
    ]
    answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
    assert answer.status_code == 200, answer.text
    assert {each["status"] for each in answer.json()["results"]} == {"created"}


async def wait_until_done(api: httpx.AsyncClient, count: int) -> dict[str, int]:
    """How many timers have each status, once all of them are finished."""

    async def counts() -> dict[str, int]:
        totals = {}
        for status in ("completed", "failed"):
            answer = await api.get("/timers", params={"status": status, "limit": 1})
            totals[status] = int(answer.json()["data"]["total"])
        return totals

    return await poll(counts, lambda totals: sum(totals.values()) >= count)


async def test_more_callbacks_than_descriptors_all_complete(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(body=OK, delay_seconds=0.2)
    async with with_few_descriptors(tmp_path) as server, server.client() as api:
        await create_batch(api, 600, receiver.url)
        assert await wait_until_done(api, 600) == {"completed": 600, "failed": 0}
        assert len(receiver.requests) == 600
        limited = await server.wait_for_log("service.descriptors_limited")
        assert limited["setting"] == "DELIVERY_CONCURRENCY"
        assert limited["configured"] == 4_096
        assert isinstance(limited["used"], int)
        assert 50 < limited["used"] < 256
        assert not [entry for entry in server.logs if entry["event"] == "engine.short"]


@asynccontextmanager
async def without_descriptors(server: ServerProcess) -> AsyncIterator[None]:
    """Let the process open nothing more, as if others had taken all descriptors."""
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    taken = max(int(entry.name) for entry in Path(f"/proc/{server.pid}/fd").iterdir()) + 1
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (min(taken, 8), limits[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)


async def test_a_shortage_that_lasts_is_no_attempt_and_ends_by_itself(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(body=OK)
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await create_batch(api, 100, receiver.url)
        async with without_descriptors(server):
            short = await server.wait_for_log("engine.short")
            assert short["resource"] == "file descriptors"
            health = await poll(
                lambda: health_of(api), lambda health: health["engine"]["local_shortages"] >= 100
            )
            assert not receiver.requests
            waiting = await get_v1(api, "t7")
            assert (waiting["attempts"], waiting["lastError"]) == ([], None)
        assert await wait_until_done(api, 100) == {"completed": 100, "failed": 0}
        assert health["status"] == "up"
        assert len((await get_v1(api, "t7"))["attempts"]) == 1
        assert [each.headers["timer-attempt"] for each in receiver.requests] == ["1"] * 100
        events = [entry["event"] for entry in server.logs]
        assert events.count("engine.short") == 1
        assert not {"endpoint.opened", "timer.failed"} & set(events)


def test_more_callbacks_than_local_ports_all_complete(tmp_path: Path) -> None:
    """Each callback gets a new connection, whose port must not stay in use afterwards."""
    separate = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*separate, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets no user make network namespaces (unshare --net)")
    script = [sys.executable, "-m", "tests.real_server.few_ports", str(tmp_path)]
    done = subprocess.run(
        [*separate, *script], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert (counts["completed"], counts["failed"]) == (300, 0), done.stderr
    assert "endpoint.opened" not in done.stderr


async def health_of(api: httpx.AsyncClient) -> Json:
    answer = await api.get("/healthz")
    data: Json = answer.json()["data"]
    return data


async def test_a_host_name_that_cannot_be_looked_up_for_want_of_descriptors(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    """Resolvers report the shortage as a name that does not exist."""
    url = receiver.url.replace("127.0.0.1", "localhost")
    async with ServerProcess(tmp_path) as server, server.client() as api:
        timer_id = await create_timer(api, url, in_ms(1_000))
        async with without_descriptors(server):
            await server.wait_for_log("engine.short")
        timer = await wait_for_status(api, timer_id, "completed", "failed")
        assert (timer["status"], timer["attempt"]) == ("completed", 1)
