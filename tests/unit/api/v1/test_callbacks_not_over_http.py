"""Timers whose callbacks are not made over HTTP, seen through the v1 API."""

import pytest
from msgspec import Raw

from duetime.domain.callback import BusCallback, Callback, NatsCallback
from duetime.ports.store import CreateRequest, OnExisting
from duetime.testing.timers import make_timer
from tests.unit.api.asgi_client import IN_TEN_SECONDS
from tests.unit.api.v1.v1_bench import V1Bench, error_of, path_of

NATS = NatsCallback(topic="a.b", payload=Raw(b"[1]"))


async def store(bench: V1Bench, callback: Callback) -> None:
    timer = make_timer("one", callback=callback)
    await bench.store.create([CreateRequest(timer, OnExisting.KEEP)])


async def test_the_answer_has_the_type_of_the_callback(bench: V1Bench) -> None:
    await store(bench, NATS)
    timer = await bench.timer()
    assert (timer["callbackUrl"], timer["callbackType"]) == (None, "nats")
    assert timer["payload"] == [1]
    assert "callbackProtocol" not in timer


async def test_a_timer_of_the_bus_has_no_payload(bench: V1Bench) -> None:
    await store(bench, BusCallback())
    timer = await bench.timer()
    assert (timer["callbackUrl"], timer["callbackType"]) == (None, "bus")
    assert timer["payload"] is None


async def test_an_http_timer_has_a_url_and_no_type(bench: V1Bench) -> None:
    assert "callbackType" not in (await bench.create_v1()).json


@pytest.mark.parametrize("callback", [NATS, BusCallback()], ids=["nats", "bus"])
async def test_a_create_with_the_same_id_differs_in_the_url(
    bench: V1Bench, callback: Callback
) -> None:
    await store(bench, callback)
    reply = await bench.create_v1()
    assert error_of(reply)[:2] == (409, "TIMER_CONFLICT")
    assert reply.json["details"] == {"fields": ["executeAt", "callbackUrl"]}


@pytest.mark.parametrize("callback", [NATS, BusCallback()], ids=["nats", "bus"])
async def test_the_instant_can_be_changed(bench: V1Bench, callback: Callback) -> None:
    await store(bench, callback)
    reply = await bench.request("PUT", path_of("default", "one"), {"executeAt": IN_TEN_SECONDS})
    assert (reply.status, reply.json["executeAt"]) == (200, IN_TEN_SECONDS)
    assert reply.json["callbackUrl"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"callbackUrl": "https://example.com/"},
        {"payload": 1},
        {"callbackHeaders": {"a": "b"}},
        {"callbackProtocol": "status"},
        {"callbackTimeout": "1s"},
    ],
)
@pytest.mark.parametrize("callback", [NATS, BusCallback()], ids=["nats", "bus"])
async def test_the_callback_cannot_be_changed(
    bench: V1Bench, callback: Callback, change: dict[str, object]
) -> None:
    await store(bench, callback)
    before = await bench.timer()
    reply = await bench.request("PUT", path_of("default", "one"), change)
    (field,) = change
    assert error_of(reply) == (
        400,
        "INVALID_INPUT",
        f"{field} cannot be changed: the callback is not made over HTTP",
    )
    assert await bench.timer() == before
