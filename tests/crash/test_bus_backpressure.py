"""Consumers that do not read, a stream that is full, a store that is stuck: nobody else waits for
them, nothing piles up in the service, and nothing is given up."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from nats.js.api import AckPolicy, ConsumerConfig

from duetime.domain.instants import MICROSECONDS_PER_MS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.bus import Channel
from tests.brokers.bus_client import schedule_timer
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.running_broker import (
    RunningBroker,
    bus_health,
    wait_for_bus,
    wait_until_all_acknowledged,
    wait_until_taken,
)
from tests.crash.held_writes import writes_held
from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import count_timers, create_timer, in_ms, wait_until_dry

pytestmark = [pytest.mark.crash, pytest.mark.slow]

BURST = 1_500
ROOM = 200
MORE_THAN_ROOM = 350
MORE_THAN_IN_FLIGHT = 8_000
A_FEW_THOUSAND = 5_000
LATEST_MS = 1_000
HTTP_TIMERS = 20
HOUR_MS = 3_600_000


@pytest.fixture
def server(tmp_path: Path, database: Database, broker: RunningBroker) -> ServerProcess:
    """Not started yet."""
    return ServerProcess(tmp_path, **database.settings, **broker.settings)


@pytest.mark.exclusive
async def test_consumers_that_do_not_read_delay_no_timer(
    server: ServerProcess, broker: RunningBroker, receiver: CallbackReceiver
) -> None:
    calls = _calls(BURST)
    async with server, NatsBusClient(broker.url, reads=False) as bus, server.client() as api:
        stuck = ConsumerConfig(
            durable_name="stuck", ack_policy=AckPolicy.EXPLICIT, max_ack_pending=10
        )
        await bus.streams.pull_subscribe(Channel.EVENTS, durable="stuck", config=stuck)
        async with deaf_subscriber(broker.url, Channel.EVENTS):
            due_at = in_ms(800)
            await bus.send([schedule_timer(call, due_at) for call in calls])
            lateness_ms = await _lateness_of_http_timers(api, receiver)
            assert max(lateness_ms) < LATEST_MS
            await wait_for_bus(api, lambda health: health["events_published"] == BURST)
        stored = await bus.stored(Channel.EVENTS)
    reached = [json.loads(message.data)["payload"]["serviceCallId"] for message in stored]
    assert sorted(reached) == sorted(calls)
    last_ms = max(json.loads(message.data)["timestampMs"] for message in stored)
    assert last_ms - due_at // MICROSECONDS_PER_MS < LATEST_MS + 1_000


@on_every_database
async def test_events_wait_until_a_full_stream_has_room(
    server: ServerProcess, broker: RunningBroker, receiver: CallbackReceiver
) -> None:
    calls = _calls(MORE_THAN_ROOM)
    async with NatsBusClient(broker.url, reads=False) as preparing:
        await preparing.prepare_events(max_messages=ROOM)
    async with server, NatsBusClient(broker.url) as bus, server.client() as api:
        await bus.send([schedule_timer(call, in_ms(0), tenant=DEFAULT_NAMESPACE) for call in calls])
        await wait_until_taken(api, len(calls))
        await bus.book.wait_for_total(ROOM)
        await _lateness_of_http_timers(api, receiver)
        completed = ROOM + HTTP_TIMERS
        counts = await poll(lambda: count_timers(api), lambda now: now["completed"] >= completed)
        assert (counts["failed"], counts["completed"]) == (0, completed)
        assert (await bus.stream(Channel.EVENTS)).state.messages == ROOM
        assert (await bus_health(api))["connected"] is True
        await bus.purge(Channel.EVENTS)
        await bus.book.wait_for_calls(calls)
        counts = await wait_until_dry(api)
        assert (counts["failed"], counts["completed"]) == (0, len(calls) + HTTP_TIMERS)
        assert bus.book.times_by_call() == dict.fromkeys(calls, 1)


@on_every_database
async def test_commands_stay_with_the_broker_while_the_store_is_stuck(
    server: ServerProcess, broker: RunningBroker, database: Database
) -> None:
    commands = [
        schedule_timer(call, in_ms(HOUR_MS), tenant=DEFAULT_NAMESPACE)
        for call in _calls(MORE_THAN_IN_FLIGHT)
    ]
    async with server, server.client() as api:
        async with NatsBusClient(broker.url, reads=False) as bus:
            async with writes_held(database):
                await bus.send(commands)
                assert 0 < await bus.handed_over() <= A_FEW_THOUSAND
                assert await bus.unacknowledged() == len(commands)
            await wait_for_bus(api, lambda health: health["commands_received"] == len(commands))
            await wait_until_all_acknowledged(bus)
        assert (await count_timers(api))["pending"] == len(commands)


async def _lateness_of_http_timers(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> list[float]:
    """Returns once a few timers with HTTP callbacks have been created and completed."""
    due_at = {}
    for number in range(HTTP_TIMERS):
        target = f"/{number}"
        due_at[target] = in_ms(200 + 30 * number)
        await create_timer(api, receiver.url + target, due_at[target])
    await receiver.wait_for_targets(set(due_at))
    await poll(lambda: count_timers(api), lambda counts: counts["completed"] >= HTTP_TIMERS)
    lateness_ms = [
        (request.arrived_at - due_at[request.target]) / MICROSECONDS_PER_MS
        for request in receiver.requests
    ]
    assert min(lateness_ms) >= 0
    return lateness_ms


@asynccontextmanager
async def deaf_subscriber(url: str, subject: str) -> AsyncIterator[None]:
    """A subscriber that reads nothing of what the broker sends."""
    host, _, port = url.removeprefix("nats://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port), limit=1_024)
    writer.write(f"CONNECT {{}}\r\nSUB {subject} 1\r\n".encode())
    await writer.drain()
    assert isinstance(writer.transport, asyncio.ReadTransport)
    writer.transport.pause_reading()
    try:
        yield
    finally:
        writer.transport.abort()


def _calls(count: int) -> list[str]:
    return [f"call-{number}" for number in range(count)]
