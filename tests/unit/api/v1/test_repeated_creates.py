"""Creates with an id that is taken: a repeat, a conflict or a replacement."""

from typing import Any

import pytest

from tests.unit.api.v1.v1_bench import V1Bench, create_body, error_of, path_of


async def test_an_equal_timer_is_the_same(bench: V1Bench) -> None:
    first = await bench.create_v1(payload={"a": 1, "b": [2]})
    again = await bench.create_v1(payload={"b": [2], "a": 1})
    assert (again.status, again.json) == (200, first.json)


async def test_a_default_written_out_is_no_difference(bench: V1Bench) -> None:
    first = await bench.create_v1()
    again = await bench.create_v1(
        callbackTimeout="30s", callbackProtocol="answer", retryPolicy={}, namespace="default"
    )
    assert (again.status, again.json) == (200, first.json)


@pytest.mark.parametrize("spelt_out", [{"payload": None}, {"callbackHeaders": {}}])
async def test_an_explicit_nothing_is_no_difference(
    bench: V1Bench, spelt_out: dict[str, Any]
) -> None:
    first = await bench.create_v1(id="with", **spelt_out)
    again = await bench.create_v1(id="with")
    assert (again.status, again.json) == (200, first.json)
    first = await bench.create_v1(id="without")
    again = await bench.create_v1(id="without", **spelt_out)
    assert (again.status, again.json) == (200, first.json)


async def test_null_as_the_whole_body_is_not_the_same_as_none(bench: V1Bench) -> None:
    await bench.create_v1(callbackProtocol="status")
    again = await bench.create_v1(callbackProtocol="status", payload=None)
    assert error_of(again)[:2] == (409, "TIMER_CONFLICT")


async def test_another_default_of_the_namespace_is_no_difference(bench: V1Bench) -> None:
    first = await bench.create_v1()
    options = {"retryPolicy": {"maxRetries": 9}}
    assert (await bench.request("PUT", "/api/v1/namespaces/default", options)).status == 200
    again = await bench.create_v1()
    assert (again.status, again.json) == (200, first.json)


async def test_an_equal_timer_is_the_same_after_its_instant(bench: V1Bench) -> None:
    first = await bench.create_v1()
    bench.clock.advance(60)
    again = await bench.create_v1()
    assert (again.status, again.json) == (200, first.json)


@pytest.mark.parametrize(
    "change",
    [
        {"executeAt": "2030-01-01T00:00:11Z"},
        {"callbackUrl": "https://example.com/other"},
        {"payload": 1},
        {"retryPolicy": {"maxRetries": 4}},
        {"callbackTimeout": "1s"},
        {"callbackHeaders": {"X-A": "b"}},
        {"callbackProtocol": "status"},
        {"metadata": {"team": "secret"}},
    ],
)
async def test_a_different_timer_is_a_conflict_that_names_the_members(
    bench: V1Bench, change: dict[str, Any]
) -> None:
    first = await bench.create_v1()
    reply = await bench.create_v1(**change)
    (field,) = change
    message = f"a timer with this id exists and differs in {field}"
    assert error_of(reply) == (409, "TIMER_CONFLICT", message)
    assert reply.json["details"] == {"fields": [field]}
    assert await bench.timer() == first.json


async def test_a_conflict_names_the_members_even_after_the_instant(bench: V1Bench) -> None:
    first = await bench.create_v1()
    bench.clock.advance(60)
    reply = await bench.create_v1(payload=1)
    message = "a timer with this id exists and differs in payload"
    assert error_of(reply) == (409, "TIMER_CONFLICT", message)
    batch = await bench.post("/batch", {"timers": [create_body(payload=1), create_body()]})
    conflict, repeat = batch.json["results"]
    assert (conflict["status"], conflict["error"]["message"]) == ("conflict", message)
    assert repeat["status"] == "existing"
    assert await bench.timer() == first.json


async def test_a_different_instant_in_the_past_is_refused(bench: V1Bench) -> None:
    await bench.create_v1()
    bench.clock.advance(60)
    reply = await bench.create_v1(executeAt="2030-01-01T00:00:11Z", payload=1)
    assert error_of(reply) == (400, "INVALID_INPUT", "executeAt must be in the future")


async def test_upsert_after_the_instant_needs_another_one(bench: V1Bench) -> None:
    await bench.create_v1()
    bench.clock.advance(60)
    reply = await bench.post("/create", create_body(payload=1))
    assert error_of(reply) == (400, "INVALID_INPUT", "executeAt must be in the future")
    await bench.fail("one")
    fired = await bench.timer()
    reply = await bench.post("/create", create_body(executeAt=fired["executeAt"], payload=1))
    assert error_of(reply)[:2] == (409, "TIMER_NOT_PENDING")


async def test_a_conflict_names_all_differing_members_and_no_values(bench: V1Bench) -> None:
    await bench.create_v1(payload={"token": "theirs"}, callbackHeaders={"X-Token": "theirs"})
    reply = await bench.create_v1(executeAt="2030-01-01T00:00:11Z", payload="ours")
    fields = ["executeAt", "callbackHeaders", "payload"]
    message = "a timer with this id exists and differs in executeAt, callbackHeaders, payload"
    assert error_of(reply) == (409, "TIMER_CONFLICT", message)
    assert reply.json["details"] == {"fields": fields}
    assert b"theirs" not in reply.content


async def test_a_changed_timer_differs_in_the_changed_members(bench: V1Bench) -> None:
    await bench.create_v1(callbackTimeoutSeconds=5)
    change = {"callbackTimeoutSeconds": 6, "callbackUrl": "https://example.com/new"}
    await bench.request("PUT", path_of("default", "one"), change)
    reply = await bench.create_v1(callbackTimeoutSeconds=5)
    assert reply.json["details"] == {"fields": ["callbackUrl", "callbackTimeout"]}


async def test_the_same_id_in_another_namespace_is_another_timer(bench: V1Bench) -> None:
    await bench.create_v1()
    reply = await bench.create_v1(namespace="notifications", payload=1)
    assert reply.status == 200


async def test_upsert_replaces_a_pending_timer(bench: V1Bench) -> None:
    await bench.create_v1(payload=1)
    reply = await bench.post("/create", create_body(payload=2))
    assert (reply.status, reply.json["payload"]) == (200, 2)
    assert reply.headers["timer-existence"] == "replaced"
    assert (await bench.timer())["payload"] == 2
    equal = await bench.post("/create", create_body(payload=2))
    assert equal.headers["timer-existence"] == "replaced"


async def test_upsert_does_not_replace_a_fired_timer(bench: V1Bench) -> None:
    await bench.create_v1()
    await bench.fail("one")
    reply = await bench.post("/create", create_body(payload=2))
    assert error_of(reply) == (
        409,
        "TIMER_NOT_PENDING",
        "cannot replace timer with status 'failed'",
    )
    assert reply.json["details"] == {"status": "failed"}
    assert "timer-existence" not in reply.headers


async def test_upsert_returns_a_fired_timer_that_is_equal(bench: V1Bench) -> None:
    await bench.create_v1()
    await bench.fail("one")
    fired = await bench.timer()
    reply = await bench.post("/create", create_body(executeAt=fired["executeAt"]))
    assert (reply.status, reply.json) == (200, fired)
    assert reply.headers["timer-existence"] == "existing"


@pytest.mark.parametrize("path", ["", "/create"])
async def test_the_header_says_that_a_timer_is_new(bench: V1Bench, path: str) -> None:
    reply = await bench.post(path, create_body())
    assert reply.headers["timer-existence"] == "created"
    assert reply.headers["content-type"] == "application/json"


async def test_the_header_says_that_a_timer_existed(bench: V1Bench) -> None:
    await bench.create_v1()
    assert (await bench.create_v1()).headers["timer-existence"] == "existing"
    bench.clock.advance(60)
    assert (await bench.create_v1()).headers["timer-existence"] == "existing"


async def test_only_creates_have_the_header(bench: V1Bench) -> None:
    await bench.create_v1()
    path = path_of("default", "one")
    for reply in (
        await bench.request("GET", path),
        await bench.request("PUT", path, {"payload": 1}),
    ):
        assert reply.status == 200
        assert "timer-existence" not in reply.headers


async def test_an_id_is_free_again_after_delete(bench: V1Bench) -> None:
    await bench.create_v1(payload=1)
    await bench.request("DELETE", path_of("default", "one"))
    assert (await bench.create_v1(payload=2)).json["payload"] == 2
