"""The bus on a real server and a real broker: commands in, events out."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest
from uuid_utils import uuid7

from duetime.domain.instants import (
    MICROSECONDS_PER_MS,
    parse_instant,
)
from tests.brokers.bus_client import TENANT, Command, cancel_timer, schedule_timer
from tests.brokers.running_broker import (
    RunningBroker,
    bus_health,
    on_every_broker,
    wait_for_bus,
    wait_until_all_acknowledged,
    wait_until_taken,
    with_each_broker,
)
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, get_timer, in_ms, wait_for_status
from tests.real_server.v1_requests import get_v1, v1_path, wait_for_v1

pytestmark = pytest.mark.e2e

HOUR_MS = 3_600_000
MALFORMED = 1_000


@pytest.fixture
def server(tmp_path: Path, database: Database, broker: RunningBroker) -> ServerProcess:
    """Not started yet."""
    return ServerProcess(tmp_path, **database.settings, **broker.settings)


@on_every_broker
async def test_a_command_becomes_an_event(server: ServerProcess, broker: RunningBroker) -> None:
    async with server, broker.client() as bus:
        due_at = in_ms(300)
        command = schedule_timer("call-1", due_at, tenant="wild coyote", correlation_id="req-7")
        await bus.send([command, schedule_timer("call-2", due_at, tenant="wild coyote")])
        await bus.book.wait_for_calls({"call-1", "call-2"})
        ((first,), (second,)) = bus.book.of("call-1"), bus.book.of("call-2")

    envelope = first.envelope
    fields = ("id", "type", "tenantId", "aggregateId", "timestampMs", "correlationId", "payload")
    assert set(envelope) == set(fields), "causationId is absent, and nothing is added"
    assert (envelope["type"], envelope["tenantId"]) == ("DueTimeReached", "wild coyote")
    assert (envelope["aggregateId"], envelope["correlationId"]) == ("call-1", "req-7")
    assert set(envelope["payload"]) == {"tenantId", "serviceCallId", "reachedAt"}
    assert envelope["payload"]["tenantId"] == "wild coyote"
    assert envelope["payload"]["serviceCallId"] == "call-1"
    assert first.reached_at >= due_at
    assert envelope["timestampMs"] == first.reached_at // MICROSECONDS_PER_MS
    assert UUID(first.id).version == 7
    assert first.id != command.id
    assert "correlationId" not in second.envelope
    assert second.id != first.id


@on_every_broker
async def test_payloads_come_back_and_canceled_calls_are_silent(
    server: ServerProcess, broker: RunningBroker
) -> None:
    carried = {"order": 4711, "lines": ["\u00e9", None, 1.5]}
    async with server, broker.client() as bus, server.client() as api:
        await bus.send([schedule_timer("canceled", in_ms(HOUR_MS), payload=carried)])
        await wait_until_all_acknowledged(bus)
        await bus.send(
            [cancel_timer("canceled"), schedule_timer("kept", in_ms(300), payload=carried)]
        )
        canceled = await wait_for_v1(api, "canceled", "canceled", namespace=TENANT)
        await bus.send([schedule_timer("canceled", in_ms(0))])
        await bus.book.wait_for_calls({"kept"})
        (event,) = bus.book.of("kept")
        await wait_until_all_acknowledged(bus)
        assert bus.book.of("canceled") == []
    assert canceled["payload"] == carried
    assert event.envelope["payload"]["payload"] == carried


@on_every_broker
async def test_a_command_changes_a_pending_timer_but_not_a_fired_one(
    server: ServerProcess, broker: RunningBroker
) -> None:
    async with server, broker.client() as bus, server.client() as api:
        await bus.send([schedule_timer("past", in_ms(-HOUR_MS))])
        await bus.send([schedule_timer("moved", in_ms(HOUR_MS), correlation_id="first")])
        await bus.book.wait_for_calls({"past"})
        await wait_for_v1(api, "past", "completed", namespace=TENANT)
        moved_to = in_ms(200)
        await bus.send([schedule_timer("moved", moved_to, correlation_id="second")])
        # A late command for a timer that has fired, and one that shows when it was received.
        await bus.send([schedule_timer("past", in_ms(100)), schedule_timer("last", in_ms(600))])
        await bus.book.wait_for_calls({"moved", "last"})
        await wait_for_v1(api, "last", "completed", namespace=TENANT)
        (moved,) = bus.book.of("moved")
        assert moved.reached_at >= moved_to
        assert moved.envelope["correlationId"] == "second"
        assert bus.book.times_by_call() == {"past": 1, "moved": 1, "last": 1}
        health = await bus_health(api)
        assert health == {
            "broker": broker.url,
            "connected": True,
            "consuming": True,
            "commands_received": 5,
            "commands_rejected": 0,
            "commands_ignored": 1,
            "events_published": 3,
        }
        await wait_until_all_acknowledged(bus)


@on_every_database
async def test_the_http_apis_show_and_cancel_timers_of_the_bus(
    server: ServerProcess, broker: RunningBroker
) -> None:
    async with server, broker.client() as bus, server.client() as api:
        # Late enough that a busy machine reads the timers before they are due.
        due_at, call, canceled = in_ms(2_000), str(uuid7()), str(uuid7())
        await bus.send(
            [
                schedule_timer("deleted", due_at),
                schedule_timer("kept", due_at),
                schedule_timer(call, due_at, tenant="default"),
                schedule_timer(canceled, due_at, tenant="default"),
            ]
        )
        await wait_until_taken(api, 4)
        kept = await get_v1(api, "kept", TENANT)
        assert (kept["status"], kept["namespace"], kept["id"]) == ("pending", TENANT, "kept")
        assert parse_instant(kept["executeAt"]) == due_at
        listed = await get_timer(api, call)
        assert (listed["status"], listed["callback_type"]) == ("pending", "bus")
        assert parse_instant(listed["execute_at"]) == due_at
        assert (await api.delete(v1_path("deleted", TENANT))).status_code == 204
        assert (await api.delete(f"/timers/{canceled}")).status_code == 200

        await bus.book.wait_for_calls({"kept", call})
        done = await wait_for_v1(api, "kept", "completed", namespace=TENANT)
        assert [attempt["error"] for attempt in done["attempts"]] == [None]
        assert bus.book.of("kept")[0].id == kept["deliveryId"]
        assert (await wait_for_status(api, call, "completed"))["attempt"] == 1
        # A command revives no canceled timer. The last command shows that the others were received.
        await bus.send(
            [
                schedule_timer(canceled, in_ms(0), tenant="default"),
                schedule_timer("deleted", in_ms(0)),
            ]
        )
        await bus.send([schedule_timer("last", in_ms(100))])
        await bus.book.wait_for_calls({"last"})
        assert bus.book.times_by_call() == {"kept": 1, call: 1, "last": 1}
        assert (await get_timer(api, canceled))["status"] == "canceled"
        assert (await get_v1(api, "deleted", TENANT))["status"] == "canceled"
        assert (await bus_health(api))["commands_ignored"] == 2


@with_each_broker
async def test_a_thousand_malformed_commands_block_nothing(
    server: ServerProcess, broker: RunningBroker
) -> None:
    async with server, broker.client() as bus, server.client() as api:
        await bus.send([_malformed(number) for number in range(MALFORMED)])
        await bus.send([schedule_timer("good", in_ms(0))])
        await bus.book.wait_for_calls({"good"})
        await wait_until_taken(api, MALFORMED + 1)
        health = await bus_health(api)
        assert (health["commands_rejected"], health["events_published"]) == (MALFORMED, 1)
        await wait_until_all_acknowledged(bus)
        rejections = await bus.rejections()
    assert {rejection["type"] for rejection in rejections} == {"CommandRejected"}
    reasons = Counter(rejection["payload"]["reason"] for rejection in rejections)
    assert reasons == {reason: MALFORMED // len(_MALFORMED) for _, reason in _MALFORMED}
    assert len({rejection["id"] for rejection in rejections}) == MALFORMED


_MALFORMED = (
    (b"{", "the command is not JSON in UTF-8, or is nested too deeply"),
    (
        b'{"type": "StopTimer"}',
        "type is 'StopTimer'; only 'ScheduleTimer' and 'CancelTimer' are known",
    ),
    (
        b'{"type": "ScheduleTimer", "id": "1", "tenantId": "a", "timestampMs": 1, "payload":'
        b' {"tenantId": "b", "serviceCallId": "c", "dueAt": "2030-01-01T00:00:00Z"}}',
        "payload.tenantId must be the same as tenantId",
    ),
    (
        b'{"type": "ScheduleTimer", "id": "1", "tenantId": "a", "timestampMs": 1, "payload":'
        b' {"tenantId": "a", "serviceCallId": 7, "dueAt": "2030-01-01T00:00:00Z"}}',
        "payload.serviceCallId must be a string",
    ),
)


def _malformed(number: int) -> Command:
    return Command(f"malformed-{number}", _MALFORMED[number % len(_MALFORMED)][0])


@with_each_broker
async def test_commands_wait_for_a_service_that_is_down(
    server: ServerProcess, broker: RunningBroker
) -> None:
    await server.start()
    assert await server.stop() == 0
    calls = {f"call-{number}" for number in range(300)}
    async with broker.client() as bus:
        await bus.send([schedule_timer(call, in_ms(-1)) for call in sorted(calls)])
        assert await bus.unacknowledged() == len(calls)
        async with server, server.client() as api:
            await bus.book.wait_for_calls(calls)
            await wait_until_taken(api, len(calls))
            await wait_until_all_acknowledged(bus)
        assert bus.book.times_by_call() == dict.fromkeys(calls, 1)


@with_each_broker
async def test_the_server_waits_for_a_broker_that_is_away_at_the_start(
    server: ServerProcess, broker: RunningBroker
) -> None:
    broker.process.stop()
    async with server, server.client() as api:
        assert (await server.wait_for_log("bus.unavailable"))["broker"] == broker.url
        assert (await bus_health(api))["connected"] is False
        assert (await api.get("/healthz")).status_code == 200
        other_door = await create_timer(api, "http://127.0.0.1:9/", in_ms(200))
        await wait_for_status(api, other_door, "failed")
        broker.process.start()
        async with broker.client() as bus:
            await bus.send([schedule_timer("waited", in_ms(0))])
            await bus.book.wait_for_calls({"waited"})
        assert (await wait_for_bus(api, lambda bus: bus["connected"]))["events_published"] == 1


@on_every_broker
async def test_a_stop_during_commands_loses_and_repeats_nothing(
    server: ServerProcess, broker: RunningBroker
) -> None:
    chance = random.Random(7)
    calls: list[str] = []
    async with server, broker.client() as bus:

        async def send_some() -> None:
            more = [f"call-{len(calls) + number}" for number in range(100)]
            calls.extend(more)
            await bus.send([schedule_timer(call, in_ms(chance.uniform(0, 1_000))) for call in more])

        async def keep_sending() -> None:
            while not stopped:
                await send_some()

        stopped = False
        sending = asyncio.create_task(keep_sending())
        async with server.client() as api:
            await wait_until_taken(api, 500)
        assert await server.stop() == 0
        stopped = True
        await sending
        await send_some()
        left = await bus.unacknowledged()
        assert 0 < left < len(calls), "the server was meant to stop in the middle"
        await server.start()
        async with server.client() as api:
            await bus.book.wait_for_calls(calls)
            await wait_until_all_acknowledged(bus)
            received = (await bus_health(api))["commands_received"]
            assert 0 < received <= left, "what was acknowledged came again"
            for call in calls[::50]:
                timer = await wait_for_v1(api, call, "completed", namespace=TENANT)
                assert len(timer["attempts"]) == 1
        assert bus.book.times_by_call() == dict.fromkeys(calls, 1)
    assert not any("Traceback" in line for line in server.output)
