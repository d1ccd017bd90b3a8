"""The broker dies, the service dies, both die: every call is announced, and none twice.

`DUETIME_TEST_BUS_TIMERS` is how many timers the largest of these tests has.
"""

import asyncio
import os
import random
from pathlib import Path

import httpx
import pytest

from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.outcome import INTERRUPTED
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.running_broker import RunningBroker, wait_until_taken
from tests.crash.announcements import (
    check_all_completed,
    check_each_is_stored_once,
    command_of,
)
from tests.crash.held_writes import writes_held
from tests.effort import scaled
from tests.polling import poll
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import wait_for_v1
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TIMERS_IN_ALL = int(os.environ.get("DUETIME_TEST_BUS_TIMERS", "2000"))
BURST = 1_000
IN_FLIGHT = 60
ACK_WAIT_SECONDS = 2
KILLS = scaled(3)


@pytest.fixture
def server(tmp_path: Path, database: Database, broker: RunningBroker) -> ServerProcess:
    """Not started yet."""
    return ServerProcess(tmp_path, **database.settings, **broker.settings)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(chosen_seed())


@on_every_database
async def test_a_broker_killed_during_a_burst_loses_nothing(
    server: ServerProcess, broker: RunningBroker, chance: random.Random
) -> None:
    calls = _calls(BURST)
    async with server, NatsBusClient(broker.url) as bus, server.client() as api:
        due_at = in_ms(800)
        await bus.send([command_of(call, due_at) for call in calls])
        for _ in range(2):
            await _wait_for_more(bus, chance.randint(1, BURST // 3), BURST)
            broker.process.kill()
            broker.process.start()
        await bus.book.wait_for_calls(calls)
        await check_all_completed(api, BURST)
        assert min(event.reached_at for event in bus.book.events) >= due_at
        await check_each_is_stored_once(bus, calls)
    assert not any("Traceback" in line for line in server.output)


@on_every_database
async def test_events_repeated_after_a_kill_before_settling_are_dropped_by_the_broker(
    server: ServerProcess, broker: RunningBroker, database: Database
) -> None:
    calls = _calls(IN_FLIGHT)
    async with server, NatsBusClient(broker.url) as bus:
        async with server.client() as api:
            await bus.send([command_of(call, in_ms(1_500)) for call in calls])
            await wait_until_taken(api, len(calls))
            broker.process.pause()
            # The events are claimed and sent, and the broker does not answer.
            await _wait_until_in_flight(api, len(calls))
        async with writes_held(database):
            broker.process.resume()
            await bus.book.wait_for_calls(calls)
            await server.kill()
        first_ids = {event.call: event.id for event in bus.book.events}
        await server.start()
        async with server.client() as api:
            for call in calls:
                timer = await wait_for_v1(api, call, "completed", namespace=DEFAULT_NAMESPACE)
                assert [attempt["error"] for attempt in timer["attempts"]] == [INTERRUPTED, None]
                assert timer["deliveryId"] == first_ids[call], "the repeat has the same id"
        await check_each_is_stored_once(bus, calls)


@pytest.mark.timeout(300)
@on_every_database
async def test_killing_broker_and_service_again_and_again_loses_nothing(
    server: ServerProcess, broker: RunningBroker, chance: random.Random
) -> None:
    calls = _calls(TIMERS_IN_ALL)
    span_ms = max(2_000, TIMERS_IN_ALL / 4)
    async with NatsBusClient(broker.url, reads=False) as preparing:
        await preparing.prepare_commands(ack_wait_seconds=ACK_WAIT_SECONDS)
    async with server, NatsBusClient(broker.url) as bus:
        commands = [command_of(call, in_ms(chance.uniform(0, span_ms))) for call in calls]
        sending = asyncio.create_task(bus.send(commands))
        for _ in range(KILLS):
            await _wait_for_more(bus, chance.randint(1, TIMERS_IN_ALL // 8), TIMERS_IN_ALL)
            await server.kill()
            if chance.random() < 0.5:
                broker.process.kill()
                broker.process.start()
            await server.start()
            await _wait_for_more(bus, chance.randint(1, TIMERS_IN_ALL // 8), TIMERS_IN_ALL)
            broker.process.kill()
            broker.process.start()
        await sending
        await bus.book.wait_for_calls(calls)
        async with server.client() as api:
            await check_all_completed(api, len(calls))
        await check_each_is_stored_once(bus, calls)


async def _wait_for_more(bus: NatsBusClient, events: int, all_events: int) -> None:
    """Wait for that many more events, or for the last one."""
    await bus.book.wait_for_total(min(len(bus.book.events) + events, all_events))


async def _wait_until_in_flight(api: httpx.AsyncClient, count: int) -> None:
    async def in_flight() -> int:
        return int((await api.get("/healthz")).json()["data"]["engine"]["in_flight"])

    await poll(in_flight, lambda timers: timers >= count)


def _calls(count: int) -> list[str]:
    return [f"call-{number}" for number in range(count)]
