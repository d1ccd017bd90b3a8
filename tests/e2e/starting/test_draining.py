"""A service that was told to stop says so to load balancers, and serves on for a while."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.real_server.databases import Database, on_postgresql
from tests.real_server.server_process import LogEntry, ServerProcess
from tests.real_server.timer_requests import create_timer, get_timer, in_ms

pytestmark = pytest.mark.e2e

NOWHERE = "http://127.0.0.1:9/"
FOR_EVER = "3600"


async def test_a_draining_server_is_not_ready_and_serves_on(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, DRAIN_SECONDS=FOR_EVER) as server, server.client() as api:
        await create_timer(api, NOWHERE, in_ms(3_600_000))
        os.kill(server.pid, signal.SIGTERM)
        draining = await server.wait_for_log("service.draining")
        assert draining["seconds"] == int(FOR_EVER)
        # The first request is on a connection from before the signal, the others on new ones.
        for _ in range(3):
            ready = await api.get("/readyz")
            assert (ready.status_code, ready.json()["message"]) == (503, "stopping")
            assert ready.headers.get_list("connection") == ["close"]
        assert (await api.get("/livez")).status_code == 200
        timer_id = await create_timer(api, NOWHERE, in_ms(3_600_000))
        assert (await get_timer(api, timer_id))["status"] == "pending"
        # A second signal does not wait.
        assert await server.stop() == -signal.SIGTERM


async def test_draining_ends_by_itself(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, DRAIN_SECONDS="0.5") as server:
        assert await server.stop() == 0
        events = [entry["event"] for entry in server.logs]
        assert events[-3:] == ["service.draining", "service.stopping", "service.stopped"]


def is_of(worker: int, entry: LogEntry) -> bool:
    return entry["worker"] == worker


@on_postgresql
async def test_workers_drain_when_they_stop_and_not_when_they_are_replaced(
    tmp_path: Path, database: Database
) -> None:
    settings = {"WORKERS": "2", "DRAIN_SECONDS": FOR_EVER, **database.settings}
    async with ServerProcess(tmp_path, **settings) as service:
        os.kill(service.pid, signal.SIGHUP)
        await service.wait_for_log("service.rolled")
        assert "service.draining" not in {entry["event"] for entry in service.logs}
        os.kill(service.pid, signal.SIGTERM)
        for worker in (1, 2):
            await service.wait_for_log("service.draining", matches=partial(is_of, worker))
        for _ in range(10):
            async with service.client() as api:
                assert (await api.get("/readyz")).status_code == 503
                await create_timer(api, NOWHERE, in_ms(3_600_000))
        assert await service.stop() == 128 + signal.SIGTERM
