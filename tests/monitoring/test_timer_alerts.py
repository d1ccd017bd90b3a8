"""Alerts about timers and endpoints: caused on real servers by real receivers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.monitoring.prometheus import Prometheus
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, Json, v1_body
from tests.refusing_port import refusing_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

ONCE: Json = {"maxRetries": 0}
EVERY_SECOND: Json = {"maxRetries": 60, "initialInterval": "1s", "maxInterval": "1s"}
FAILING = 150
SLOTS = 32
RECEIVERS = 8


async def create_batch(
    api: httpx.AsyncClient, prefix: str, urls: list[str], size: int, policy: Json = ONCE
) -> None:
    """Timers that are due soon, spread over the URLs."""
    bodies = [
        v1_body(f"{prefix}-{number}", urls[number % len(urls)], in_ms(500), retryPolicy=policy)
        for number in range(size)
    ]
    answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
    assert answer.status_code == 200, answer.text
    assert {each["status"] for each in answer.json()["results"]} == {"created"}, answer.text


async def test_endpoints_that_fail_are_away_or_are_not_allowed(
    tmp_path: Path, prometheus: Prometheus, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(status=404)
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await prometheus.watch(server)
        await create_batch(api, "ok", [f"{receiver.url}/ok"], 1)
        await _wait_until_counted(prometheus)
        with refusing_port() as port:
            await create_batch(api, "away", [f"http://127.0.0.1:{port}"], 10, EVERY_SECOND)
            # The service never calls itself.
            await create_batch(api, "refused", [server.url.replace("127.0.0.1", "localhost")], 1)
            await create_batch(api, "failing", [receiver.url], FAILING)
            await prometheus.fires(
                "DuetimePermanentErrors",
                "DuetimeFailedGrowing",
                "DuetimeCallbacksRefused",
                "DuetimeBreakerOpen",
            )


async def _wait_until_counted(prometheus: Prometheus) -> None:
    """Wait until Prometheus knows a number of failed timers, from which it can grow."""
    await poll(lambda: prometheus.query('duetime_timers{status="failed"}'), bool)


@asynccontextmanager
async def slow_receivers() -> AsyncIterator[list[str]]:
    """They answer each callback, after a second. Endpoints that hang get only a part of the slots,
    so that they cannot exhaust them."""
    async with AsyncExitStack() as stack:
        receivers = [await stack.enter_async_context(CallbackReceiver()) for _ in range(RECEIVERS)]
        for receiver in receivers:
            receiver.reaction = Answer(body=b'{"ok": true}', delay_seconds=1.0)
        yield [receiver.url for receiver in receivers]


async def test_more_timers_than_slots(tmp_path: Path, prometheus: Prometheus) -> None:
    async with (
        slow_receivers() as urls,
        ServerProcess(tmp_path, DELIVERY_CONCURRENCY=str(SLOTS)) as server,
        server.client() as api,
    ):
        objective = {"slo": "99.9 % within 100ms over 30d"}
        answer = await api.put("/api/v1/namespaces/default", json=objective)
        assert answer.status_code == 200, answer.text
        await prometheus.watch(server)

        async def create_more() -> None:
            for number in count():
                await create_batch(api, f"batch-{number}", urls, 50)
                await prometheus.next_scrape()

        load = asyncio.create_task(create_more())
        try:
            await prometheus.fires(
                "DuetimeSlotsExhausted",
                "DuetimeLate",
                "DuetimeObjectiveBurningFast",
                "DuetimeObjectiveBurningSlowly",
                "DuetimeObjectiveMissed",
            )
        finally:
            load.cancel()
            await asyncio.wait({load})
