"""Alerts about nodes that share PostgreSQL: caused on real clusters."""

import asyncio
from itertools import count
from pathlib import Path

import httpx
import psutil
import pytest

from tests.cluster.nodes import running_nodes
from tests.monitoring.prometheus import Prometheus
from tests.polling import poll
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body
from tests.real_server.wrong_clock import ClockAhead

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

LEASE_SECONDS = 40
NOWHERE = "http://127.0.0.1:9/"


async def test_a_node_that_hangs(
    tmp_path: Path, prometheus: Prometheus, postgres_url: str, postgres_schema: str
) -> None:
    async with (
        running_nodes(
            2, tmp_path, postgres_url, postgres_schema, LEASE_SECONDS=str(LEASE_SECONDS)
        ) as nodes,
        nodes[0].client() as api,
    ):
        await prometheus.watch(*nodes.all)
        # The other node cannot know for LEASE_SECONDS that this one will not go on. Meanwhile the
        # timers of its shards become due.
        nodes[1].pause()
        load = asyncio.create_task(_create_more(api, prometheus))
        await prometheus.fires("DuetimeShardsWithoutOwner", "DuetimeDown", "DuetimeOverdueGrowing")
        load.cancel()
        await prometheus.fires("DuetimeMemberMissing")
        await prometheus.fell_silent("DuetimeShardsWithoutOwner")


async def _create_more(api: httpx.AsyncClient, prometheus: Prometheus) -> None:
    """Create timers of all shards that are due soon, until the task is cancelled."""
    for batch in count():
        bodies = [v1_body(f"{batch}-{number}", NOWHERE, in_ms(500)) for number in range(32)]
        await api.post(f"{TIMERS}/batch", json={"timers": bodies})
        await prometheus.next_scrape()


# A scrape waits a second for a worker that hangs.
@pytest.mark.parametrize("prometheus", [2_000], indirect=True)
async def test_a_worker_that_hangs(
    tmp_path: Path, prometheus: Prometheus, postgres_url: str, postgres_schema: str
) -> None:
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema, "WORKERS": "2"}
    async with ServerProcess(tmp_path, **settings) as server:
        await prometheus.watch(server)
        running = 'count(duetime_engine_running{worker!=""}) == 2'
        await poll(lambda: prometheus.query(running), bool)
        worker = _worker_without_a_connection_to(prometheus.pid, server)
        worker.suspend()
        await prometheus.fires("DuetimeWorkerMissing")
        worker.resume()
        await prometheus.fell_silent("DuetimeWorkerMissing")


def _worker_without_a_connection_to(pid: int, server: ServerProcess) -> psutil.Process:
    """Prometheus goes on with its connection. If the other worker hangs, the target is down."""
    its_ports = {
        each.laddr.port
        for each in psutil.Process(pid).net_connections()
        if each.status == psutil.CONN_ESTABLISHED
    }
    for process in psutil.Process(server.pid).children():
        connections = process.net_connections()
        is_worker = any(each.status == psutil.CONN_LISTEN for each in connections)
        ports = {each.raddr.port for each in connections if each.status == psutil.CONN_ESTABLISHED}
        if is_worker and not ports & its_ports:
            return process
    raise AssertionError("no worker is without a connection")


async def test_a_node_whose_clock_is_wrong(
    tmp_path: Path,
    prometheus: Prometheus,
    postgres_url: str,
    postgres_schema: str,
    clock_ahead: ClockAhead,
) -> None:
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema}
    async with ServerProcess(tmp_path, **settings, **clock_ahead(30)) as server:
        await prometheus.watch(server)
        await prometheus.fires("DuetimeClockSkewed")
