"""The server is killed five times in a row while clients create, change and cancel."""

import asyncio
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from duetime.domain.callback import HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import DEFAULT_NAMESPACE
from duetime.domain.timer import Timer
from duetime.ports.store import PageQuery
from duetime.stores.sqlite import SqliteStore
from tests.crash.load_client import LoadClient
from tests.crash.promises import Audit
from tests.e2e.callback_receiver import CallbackReceiver
from tests.e2e.server_process import ServerProcess
from tests.e2e.timer_requests import now, wait_until_dry

pytestmark = [pytest.mark.crash, pytest.mark.slow]

KILLS = 5
CLIENTS = 8
MOST_CALLBACKS_IN_A_LIFE = 1_500
MOST_IN_FLIGHT = 2_048


async def test_nothing_is_lost_and_only_what_was_in_flight_is_repeated(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    seed = int(os.environ.get("DUETIME_TEST_SEED", random.randrange(2**32)))
    sys.stdout.write(f"DUETIME_TEST_SEED={seed}\n")
    chance = random.Random(seed)
    clients = [LoadClient(f"c{n}", receiver.url, random.Random(seed + n)) for n in range(CLIENTS)]
    starts: list[Instant] = []
    server = ServerProcess(tmp_path)
    for _ in range(KILLS):
        starts.append(now())
        await server.start()
        await _kill_under_load(
            server, clients, receiver, chance.randint(1, MOST_CALLBACKS_IN_A_LIFE)
        )
    starts.append(now())
    async with server:
        async with server.client() as api:
            counts = await wait_until_dry(api)
        assert await server.stop() == 0

    timers = await _stored_timers(tmp_path)
    promises = [promise for client in clients for promise in client.promises]
    audit = Audit(promises, receiver.requests, timers, starts)
    audit.check()
    recovered = _recovered_by_life(server)
    sys.stdout.write(
        f"{len(promises)} creates, {len(receiver.requests)} callbacks, {counts}, "
        f"recovered {recovered}, repeats {audit.repeats_by_life}\n"
    )
    assert Counter(timer.status.label for timer in timers.values()) == Counter(counts)
    assert counts["completed"] > 0
    assert counts["canceled"] > 0
    for repeats, in_flight in zip(audit.repeats_by_life, recovered, strict=True):
        assert repeats <= in_flight <= MOST_IN_FLIGHT


async def _kill_under_load(
    server: ServerProcess, clients: list[LoadClient], receiver: CallbackReceiver, callbacks: int
) -> None:
    """Kill the server when so many more callbacks have come."""
    until = len(receiver.requests) + callbacks
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(server.url))
        await receiver.wait_for_total(until)
        await server.kill()


def _recovered_by_life(server: ServerProcess) -> list[int]:
    """How many timers each start found that the life before had left executing."""
    recovered: list[int] = []
    found = 0
    for entry in server.logs:
        if entry["event"] == "timers.recovered":
            found = int(str(entry["count"]))
        elif entry["event"] == "service.started":
            recovered.append(found)
            found = 0
    return recovered


async def _stored_timers(directory: Path) -> dict[str, Timer]:
    """Every timer in the store by the target of its callback; each is there once."""
    store = SqliteStore(directory / "timers.db")
    await store.open()
    total = sum((await store.counts()).values())
    page = await store.page(PageQuery(namespace=DEFAULT_NAMESPACE, limit=total + 1))
    await store.close()
    assert len(page.timers) == page.total == total
    timers = {_target(timer): timer for timer in page.timers}
    assert len(timers) == total
    return timers


def _target(timer: Timer) -> str:
    assert isinstance(timer.callback, HttpCallback)
    return "/" + timer.callback.url.split("/", 3)[3]
