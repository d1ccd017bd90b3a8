"""NATS callbacks of the Platform API, on a real server and a real NATS server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from nats.aio.msg import Msg

from duetime.domain.instants import Instant, format_instant
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.running_broker import RunningBroker
from tests.polling import PATIENCE_SECONDS
from tests.real_server.command import run_command
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import Json, get_timer, in_ms, post_create, wait_for_status

pytestmark = pytest.mark.e2e

PATIENT_POLICY = {"max_retries": 50, "initial_interval": "50ms", "max_interval": "200ms"}


@pytest.fixture
async def server(
    tmp_path: Path, database: Database, broker: RunningBroker
) -> AsyncIterator[ServerProcess]:
    settings = {"NATS_URL": broker.url, "CALLBACK_TIMEOUT_SECONDS": "2"}
    async with ServerProcess(tmp_path, **database.settings, **settings) as process:
        yield process


@pytest.fixture
async def listener(broker: RunningBroker) -> AsyncIterator[NatsBusClient]:
    async with NatsBusClient(broker.url, reads=False) as client:
        yield client


@on_every_database
async def test_a_message_is_published_with_its_headers(
    api: httpx.AsyncClient, listener: NatsBusClient
) -> None:
    subscription = await listener.core.subscribe("orders.>")
    await listener.core.flush()
    callback = {
        "topic": "orders.expired",
        "key": "eu",
        "headers": {"X-Team": "billing", "Traceparent": "00-1-2-01"},
        "payload": {"order": 42, "price": 1.50},
    }
    due_at = in_ms(200)
    timer_id = await _create(api, due_at, callback)
    plain = await _create(api, due_at, {"topic": "orders.plain"})
    messages = {}
    for _ in range(2):
        message: Msg = await subscription.next_msg(PATIENCE_SECONDS)
        messages[message.subject] = message
    assert set(messages) == {"orders.expired.eu", "orders.plain"}
    full = messages["orders.expired.eu"]
    assert json.loads(full.data) == callback["payload"]
    assert full.headers is not None
    assert full.headers.items() >= {"X-Team": "billing", "Traceparent": "00-1-2-01"}.items()
    assert messages["orders.plain"].data == b""
    for each in (timer_id, plain):
        timer = await wait_for_status(api, each, "completed", "failed")
        assert (timer["status"], timer["last_error"]) == ("completed", None)
        assert timer["callback_type"] == "nats"
    assert (await get_timer(api, timer_id))["callback_config"]["key"] == "eu"


async def test_a_message_that_cannot_be_published_is_refused_at_once(
    api: httpx.AsyncClient,
) -> None:
    refused: list[tuple[Json, str]] = [
        ({"topic": "orders.*"}, "callback.topic"),
        ({"topic": "orders expired"}, "callback.topic"),
        ({"topic": "orders..expired"}, "callback.topic"),
        ({"topic": ""}, "callback.topic"),
        ({"topic": "orders", "key": ">"}, "callback.key"),
        ({"topic": "orders", "headers": {"X-Bad": "a\r\nInjected: 1"}}, "callback.headers"),
        ({"topic": "orders", "ack": "yes"}, "callback.ack"),
    ]
    for callback, field in refused:
        answer = await api.post("/timers", json=_body(in_ms(60_000), callback))
        assert (answer.status_code, answer.json()["code"]) == (400, 2), answer.text
        assert field in answer.json()["message"]


async def test_a_nats_callback_is_refused_without_a_nats_server(
    shared_server: ServerProcess,
) -> None:
    async with shared_server.client() as api:
        answer = await api.post("/timers", json=_body(in_ms(60_000), {"topic": "orders"}))
        assert (answer.status_code, answer.json()["code"]) == (400, 2)
        assert "callback.type" in answer.json()["message"]
        assert "NATS_URL" in answer.json()["message"]


@on_every_database
async def test_a_dead_nats_server_fails_a_timer_or_delays_one_with_retries(
    api: httpx.AsyncClient, broker: RunningBroker, listener: NatsBusClient
) -> None:
    subscription = await listener.core.subscribe("orders.>")
    await listener.core.flush()
    broker.process.kill()
    failing = await _create(api, in_ms(200), {"topic": "orders.failing"})
    patient = await _create(
        api, in_ms(200), {"topic": "orders.patient"}, retry_policy=PATIENT_POLICY
    )
    failed = await wait_for_status(api, failing, "failed", "completed")
    assert failed["status"] == "failed"
    assert "127.0.0.1" in failed["last_error"], failed["last_error"]
    assert failed["attempt"] == 1
    broker.process.start()
    completed = await wait_for_status(api, patient, "completed", "failed")
    assert completed["status"] == "completed"
    assert completed["attempt"] > 1
    # The listener connects again by itself; a message of its own shows that it has.
    after = await _create(api, in_ms(200), {"topic": "orders.after"}, retry_policy=PATIENT_POLICY)
    await wait_for_status(api, after, "completed")
    await subscription.unsubscribe()


async def test_with_ack_a_timer_is_completed_when_a_stream_has_the_message(
    api: httpx.AsyncClient, listener: NatsBusClient
) -> None:
    homeless = await _create(api, in_ms(200), {"topic": "orders.early", "ack": True})
    failed = await wait_for_status(api, homeless, "failed", "completed")
    assert failed["status"] == "failed"
    assert "no stream" in failed["last_error"]

    await listener.streams.add_stream(name="ORDERS", subjects=["orders.>"])
    callback = {"topic": "orders.stored", "ack": True, "payload": {"n": 1}}
    timer_id = await _create(api, in_ms(200), callback)
    assert (await wait_for_status(api, timer_id, "completed", "failed"))["status"] == "completed"
    stored = await listener.streams.get_last_msg("ORDERS", "orders.stored")
    assert stored.data is not None
    assert json.loads(stored.data) == {"n": 1}


async def test_a_nats_server_that_is_away_at_the_start_is_reported_in_one_line(
    tmp_path: Path, broker: RunningBroker
) -> None:
    broker.process.stop()
    environ = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0", "NATS_URL": broker.url}
    finished = await run_command("serve", directory=tmp_path, **environ)
    assert finished.status == 1
    line = finished.errors.splitlines()[-1]
    assert broker.url in line
    assert "connection refused" in line
    assert "Traceback" not in finished.errors


def _body(execute_at: Instant, callback: Json, **more: object) -> Json:
    return {
        "execute_at": format_instant(execute_at),
        "callback": {"type": "nats", **callback},
        **more,
    }


async def _create(
    api: httpx.AsyncClient, execute_at: Instant, callback: Json, **more: object
) -> str:
    answer = await post_create(api, "/timers", _body(execute_at, callback, **more))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])
