"""A full disk: writes are refused clearly, no timer is lost, and work resumes with new room."""

import resource
from pathlib import Path

import pytest

from duetime.domain.instants import format_instant
from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import (
    count_timers,
    create_timer,
    in_ms,
    timer_body,
    wait_for_status,
    wait_until_dry,
)

pytestmark = pytest.mark.e2e


def limit_file_size(pid: int, size: int) -> None:
    """Let writes of the process beyond this size fail, as on a full disk."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


async def test_a_full_disk_refuses_creates_and_loses_nothing(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        due_meanwhile = await create_timer(api, f"{receiver.url}/meanwhile", in_ms(1_000))
        due_later = await create_timer(api, f"{receiver.url}/later", in_ms(3_600_000))
        known = {
            "id": "known",
            "executeAt": format_instant(in_ms(3_600_000)),
            "callbackUrl": receiver.url,
        }
        assert (await api.post("/api/v1/timers", json=known)).status_code == 200
        limit_file_size(server.pid, 1)

        body = timer_body(f"{receiver.url}/refused", in_ms(1_000))
        refused = await api.post("/timers", json=body)
        assert refused.status_code == 503
        assert refused.json()["code"] == 1
        assert "the disk is full" in refused.json()["message"]
        canceled = await api.delete(f"/timers/{due_later}")
        assert canceled.status_code == 503
        await server.wait_for_log("store.unavailable")
        # Nothing has to be written for this one, so it says nothing about the disk.
        repeated = await api.post("/api/v1/timers", json=known)
        assert (repeated.status_code, repeated.headers["timer-existence"]) == (200, "existing")
        health = await api.get("/healthz")
        assert health.status_code == 500
        assert "disk is full" in health.json()["message"]

        limit_file_size(server.pid, resource.RLIM_INFINITY)
        timer = await wait_for_status(api, due_meanwhile, "completed")
        assert timer["attempt"] == 1
        assert (await api.delete(f"/timers/{due_later}")).status_code == 200
        accepted = await create_timer(api, f"{receiver.url}/accepted", in_ms(50))
        await wait_for_status(api, accepted, "completed")
        assert (await api.delete("/api/v1/timers/default/known")).status_code == 204
        await wait_until_dry(api)
        assert await count_timers(api) == {
            "pending": 0,
            "executing": 0,
            "completed": 2,
            "failed": 0,
            "canceled": 1,
        }
        assert [request.target for request in receiver.requests] == ["/meanwhile", "/accepted"]
        assert (await api.get("/healthz")).status_code == 200


async def test_an_idle_server_notices_that_there_is_room_again(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        limit_file_size(server.pid, 1)
        body = timer_body("http://127.0.0.1:9/", in_ms(3_600_000))
        assert (await api.post("/timers", json=body)).status_code == 503
        assert (await api.get("/healthz")).status_code == 500
        limit_file_size(server.pid, resource.RLIM_INFINITY)

        async def status() -> int:
            return (await api.get("/healthz")).status_code

        await poll(status, lambda status: status == 200)


async def test_a_large_batch_that_did_not_fit_is_created_once_there_is_room(
    tmp_path: Path,
) -> None:
    bodies = [
        {
            "id": f"t{number}",
            "executeAt": format_instant(in_ms(3_600_000)),
            "callbackUrl": "http://127.0.0.1:9/",
        }
        for number in range(500)
    ]
    async with ServerProcess(tmp_path) as server, server.client() as api:
        path = "/api/v1/timers/batch"
        before = await api.post(path, json={"timers": bodies[:200]})
        limit_file_size(server.pid, 1)
        refused = await api.post(path, json={"timers": bodies[200:]})
        assert refused.status_code == 507
        limit_file_size(server.pid, resource.RLIM_INFINITY)
        after = await api.post(path, json={"timers": bodies})
        results = [
            [each["status"] for each in answer.json()["results"]] for answer in (before, after)
        ]
        assert results == [["created"] * 200, ["existing"] * 200 + ["created"] * 300]
        assert (await count_timers(api))["pending"] == 500


async def test_failing_checkpoints_do_not_stop_the_service(tmp_path: Path) -> None:
    """The log is copied into the database file every 32 MiB; soon that file may not grow."""
    payload = {"payload": "x" * 200_000}
    async with ServerProcess(tmp_path) as server, server.client() as api:
        limit_file_size(server.pid, 40 * 2**20)
        answers = []
        for _ in range(400):
            body = timer_body("http://127.0.0.1:9/", in_ms(3_600_000), callback=payload)
            answers.append((await api.post("/timers", json=body)).status_code)
        assert set(answers) <= {201, 503}
        await server.wait_for_log("sqlite.checkpoint_failed")
        limit_file_size(server.pid, resource.RLIM_INFINITY)
        accepted = answers.count(201)
        await create_timer(api, "http://127.0.0.1:9/", in_ms(3_600_000))
        assert (await count_timers(api))["pending"] == accepted + 1
        assert (await api.get("/healthz")).status_code == 200
