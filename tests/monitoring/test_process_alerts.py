"""Alerts about a process: caused on real servers, and seen by a real Prometheus."""

import resource
from pathlib import Path

import httpx
import pytest

from tests.monitoring.prometheus import Prometheus
from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]


async def test_a_process_that_ends_and_keeps_restarting(
    tmp_path: Path, prometheus: Prometheus
) -> None:
    async with ServerProcess(tmp_path) as server:
        await prometheus.watch(server)
        await server.kill()
        await prometheus.fires("DuetimeDown")
        for _ in range(3):
            await server.start()
            await _wait_until_scraped_anew(prometheus, server)
            await server.kill()
        await prometheus.fires("DuetimeRestarting")
        await server.start()
        await prometheus.fell_silent("DuetimeDown")


async def _wait_until_scraped_anew(prometheus: Prometheus, server: ServerProcess) -> None:
    """Wait until Prometheus has the start of the process that runs now."""
    async with server.client() as api:
        metrics = (await api.get("/metrics")).text
    started = next(
        float(line.split()[1])
        for line in metrics.splitlines()
        if line.startswith("process_start_time_seconds")
    )

    async def seen() -> list[float]:
        return [
            float(each["value"][1]) for each in await prometheus.query("process_start_time_seconds")
        ]

    await poll(seen, lambda seen: started in seen)


async def test_no_process_at_all(prometheus: Prometheus) -> None:
    await prometheus.fires("DuetimeDown")


async def test_a_process_without_descriptors(
    tmp_path: Path, prometheus: Prometheus, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await prometheus.watch(server)
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        used = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used + 2, limits[1]))
        await prometheus.fires("DuetimeDescriptorsNearlyUsed")
        bodies = [v1_body(f"t{number}", receiver.url, in_ms(1_000)) for number in range(100)]
        answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
        assert answer.status_code == 200, answer.text
        await prometheus.fires("DuetimeLocalShortages")
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        await prometheus.fell_silent("DuetimeDescriptorsNearlyUsed")


async def test_an_event_loop_that_is_held_up(tmp_path: Path, prometheus: Prometheus) -> None:
    async with ServerProcess(tmp_path) as server:
        await prometheus.watch(server)
        looks = 0

        async def stop_and_go() -> bool:
            """Stop the process half of the time, as a machine does that is far too busy."""
            nonlocal looks
            looks += 1
            (server.pause if looks % 60 < 30 else server.resume)()
            return "DuetimeEventLoopLag" in await prometheus.firing()

        await poll(stop_and_go, bool)
        server.resume()
        await prometheus.fires("DuetimeEventLoopLag")


async def test_clients_without_a_valid_key(tmp_path: Path, prometheus: Prometheus) -> None:
    async with ServerProcess(tmp_path) as server, httpx.AsyncClient(trust_env=False) as stranger:
        await prometheus.watch(server)

        async def knock() -> bool:
            await stranger.get(f"{server.url}/timers", headers={"X-API-Key": "guessed"})
            return "DuetimeRequestsUnauthorized" in await prometheus.firing()

        await poll(knock, bool)
        await prometheus.fires("DuetimeRequestsUnauthorized")
