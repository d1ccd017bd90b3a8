"""Timers that came due while no server was running, however long ago, are fired."""

from pathlib import Path

import pytest

from duetime.domain.callback import HttpCallback
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.outcome import INTERRUPTED
from duetime.domain.retry import RetryPolicy
from duetime.ports.store import CreateRequest, Existence, OnExisting
from duetime.testing.timers import make_timer
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver, Hang
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import (
    create_timer,
    in_ms,
    now,
    wait_for_status,
    wait_until_dry,
)

pytestmark = [pytest.mark.crash, on_every_database]

MINUTE_MS = 60_000
OVERDUE_MS = (1_000, 6 * MINUTE_MS, 3 * 60 * MINUTE_MS, 40 * 24 * 60 * MINUTE_MS)
TIMERS_PER_AGE = 50


async def test_timers_that_came_due_during_an_outage_are_fired(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    """Even timers that are overdue for longer than the retention of finished timers."""
    server = ServerProcess(tmp_path, RETENTION_DAYS="30", **database.settings)
    await server.start()
    last_due_at = in_ms(2_000)
    async with server.client() as api:
        for number in range(20):
            await create_timer(api, f"{receiver.url}/created/{number}", last_due_at)
    await server.kill()
    assert not receiver.requests, "the server was meant to die before the first instant"

    await _insert_overdue(database, receiver.url, until=last_due_at)
    assert now() > last_due_at
    expected = 20 + len(OVERDUE_MS) * TIMERS_PER_AGE
    async with server:
        async with server.client() as api:
            counts = await wait_until_dry(api)
        assert await server.stop() == 0
    assert counts["completed"] == expected == len(receiver.requests)
    assert len({request.target for request in receiver.requests}) == expected
    assert {request.headers["timer-attempt"] for request in receiver.requests} == {"1"}


async def test_attempts_under_way_and_waiting_retries_are_made_after_a_restart(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    receiver.script("/hangs", Hang(), Answer(200))
    receiver.script("/fails", Answer(500), Answer(200))
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        hanging = await create_timer(api, f"{receiver.url}/hangs", in_ms(50))
        policy = {"max_retries": 1, "initial_interval": "500ms"}
        failing = await create_timer(api, f"{receiver.url}/fails", in_ms(50), retry_policy=policy)
        await receiver.wait_for(2)
        await wait_for_status(api, failing, "pending")
    await server.kill()

    async with server, server.client() as api:
        hung = await wait_for_status(api, hanging, "completed", "failed")
        retried = await wait_for_status(api, failing, "completed", "failed")
    assert (hung["status"], retried["status"]) == ("completed", "completed")
    assert [attempt["error"] for attempt in hung["attempts"]] == [INTERRUPTED, None]
    assert [attempt["error"] for attempt in retried["attempts"]] == ["HTTP 500", None]
    for target in ("/hangs", "/fails"):
        first, second = receiver.of(target)
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert (first.headers["timer-attempt"], second.headers["timer-attempt"]) == ("1", "2")


async def _insert_overdue(database: Database, url: str, *, until: Instant) -> None:
    """Write timers of the past straight into the store; returns after the instant `until`."""
    store = database.store()
    await store.open()
    started_at = now()
    requests = [
        CreateRequest(
            make_timer(
                f"overdue-{overdue_ms}-{number}",
                execute_at=plus_ms(started_at, -overdue_ms),
                created_at=plus_ms(started_at, -overdue_ms - MINUTE_MS),
                callback=HttpCallback(url=f"{url}/overdue/{overdue_ms}/{number}"),
                retry_policy=RetryPolicy() if number % 2 else None,
            ),
            OnExisting.KEEP,
        )
        for overdue_ms in OVERDUE_MS
        for number in range(TIMERS_PER_AGE)
    ]
    results = await store.create(requests)
    assert {result.existence for result in results} == {Existence.CREATED}
    await poll(store.ping, lambda _: now() > until)
    await store.close()
