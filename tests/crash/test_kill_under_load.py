"""The server is killed five times in a row while clients create, change and cancel."""

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from duetime.domain.instants import Instant
from tests.crash.load_client import LoadClient
from tests.crash.promises import Audit
from tests.crash.stored_timers import stored_timers
from tests.effort import scaled
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import now, wait_until_dry
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

KILLS = scaled(5)
CLIENTS = 8
MOST_CALLBACKS_IN_A_LIFE = 500
MOST_IN_FLIGHT = 2_048


@on_every_database
async def test_no_timer_is_lost_and_only_callbacks_in_flight_are_repeated(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    seed = chosen_seed()
    chance = random.Random(seed)
    clients = [LoadClient(f"c{n}", receiver.url, random.Random(seed + n)) for n in range(CLIENTS)]
    starts: list[Instant] = []
    server = ServerProcess(tmp_path, **database.settings)
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

    timers = await stored_timers(database)
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
    """Kill the server after that many more callbacks."""
    until = len(receiver.requests) + callbacks
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(server.url))
        await receiver.wait_for_total(until)
        await server.kill()


def _recovered_by_life(server: ServerProcess) -> list[int]:
    """The number of timers that each start found executing."""
    recovered: list[int] = []
    for entry in server.logs:
        if entry["event"] == "store.opened":
            recovered.append(0)
        elif entry["event"] == "timers.recovered":
            recovered[-1] += int(str(entry["count"]))
        elif entry["event"] == "shards.taken":
            recovered[-1] += int(str(entry["timers_recovered"]))
    return recovered
