"""Canceling a timer of v1, which keeps it, so that a repeated create does not bring it back."""

import pytest

from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of, path_of

ORDER = path_of("default", "one")


async def test_a_canceled_timer_stays(bench: V1Bench) -> None:
    created = await bench.create_v1(payload={"order": 17})
    reply = await bench.request("POST", f"{ORDER}/cancel")
    assert reply.status == 200
    assert reply.json == {**created.json, "status": "canceled", "nextAttemptAt": None}
    assert await bench.timer() == reply.json


async def test_canceling_again_succeeds(bench: V1Bench) -> None:
    await bench.create_v1()
    first = await bench.request("POST", f"{ORDER}/cancel")
    bench.clock.advance(5)
    again = await bench.request("POST", f"{ORDER}/cancel", {})
    assert (again.status, again.json) == (200, first.json)


async def test_a_timer_named_in_the_body_is_canceled(bench: V1Bench) -> None:
    await bench.create_v1(namespace="notifications")
    selection = {"namespace": "notifications", "timerId": "one"}
    reply = await bench.post("/cancel", selection)
    assert (reply.status, reply.json["status"]) == (200, "canceled")
    assert reply.json == await bench.timer("one", "notifications")
    assert error_of(await bench.post("/cancel", {}))[:2] == (400, "INVALID_INPUT")


@pytest.mark.parametrize("path", ["", "/create"])
async def test_a_repeated_create_answers_with_the_canceled_timer(bench: V1Bench, path: str) -> None:
    await bench.create_v1()
    canceled = await bench.request("POST", f"{ORDER}/cancel")
    for _ in range(2):
        reply = await bench.post(path, create_body())
        assert (reply.status, reply.json) == (200, canceled.json)
        assert reply.headers["timer-existence"] == "existing"
        # The create may be delivered again after its instant.
        bench.clock.advance(60)
    assert await bench.timer() == canceled.json


async def test_a_different_create_does_not_bring_a_canceled_timer_back(bench: V1Bench) -> None:
    await bench.create_v1()
    canceled = await bench.request("POST", f"{ORDER}/cancel")
    reply = await bench.create_v1(payload=1)
    assert error_of(reply)[:2] == (409, "TIMER_CONFLICT")
    assert reply.json["details"] == {"fields": ["payload"]}
    reply = await bench.post("/create", create_body(payload=1))
    message = "cannot replace timer with status 'canceled'"
    assert error_of(reply) == (409, "TIMER_NOT_PENDING", message)
    assert reply.json["details"] == {"status": "canceled"}
    assert await bench.timer() == canceled.json


async def test_batches_and_imports_leave_a_canceled_timer_alone(bench: V1Bench) -> None:
    await bench.create_v1()
    canceled = await bench.request("POST", f"{ORDER}/cancel")
    batch = await bench.post("/batch", {"timers": [create_body(), create_body(payload=1)]})
    assert [each["status"] for each in batch.json["results"]] == ["existing", "conflict"]
    line = (
        b'{"id": "one", "executeAt": "2030-01-01T00:00:10Z",'
        b' "callbackUrl": "https://example.com/due"}'
    )
    imported = await bench.request("POST", f"{BASE}/import", line)
    assert (imported.json["created"], imported.json["existing"]) == (0, 1)
    assert await bench.timer() == canceled.json


async def test_a_cancel_that_comes_too_late_says_so(bench: V1Bench) -> None:
    await bench.create_v1()
    await bench.fail("one")
    for reply in (
        await bench.request("POST", f"{ORDER}/cancel"),
        await bench.post("/cancel", {"timerId": "one"}),
    ):
        message = "cannot cancel timer with status 'failed'"
        assert error_of(reply) == (409, "TIMER_NOT_PENDING", message)
        assert reply.json["details"] == {"status": "failed"}


async def test_an_unknown_timer_cannot_be_canceled(bench: V1Bench) -> None:
    for reply in (
        await bench.request("POST", f"{path_of('default', 'other')}/cancel"),
        await bench.post("/cancel", {"timerId": "other"}),
    ):
        assert error_of(reply) == (404, "TIMER_NOT_FOUND", "timer not found")


async def test_ids_with_slashes_stay_possible(bench: V1Bench) -> None:
    for id in ("a", "a/cancel", "a/cancel/cancel", "cancel"):
        await bench.create_v1(id)
    # Only the last segment of a POST is the verb.
    canceled = await bench.request("POST", f"{BASE}/default/a/cancel/cancel")
    assert canceled.json["id"] == "a/cancel"
    for id in ("a", "a/cancel/cancel", "cancel"):
        assert (await bench.request("GET", f"{BASE}/default/{id}")).json["status"] == "pending"
    assert (await bench.request("GET", f"{BASE}/default/a/cancel")).json == canceled.json
    changed = await bench.request("PUT", f"{BASE}/default/a/cancel/cancel", {"payload": 1})
    assert (changed.json["id"], changed.json["payload"]) == ("a/cancel/cancel", 1)
    assert (await bench.request("DELETE", f"{BASE}/default/a/cancel/cancel")).status == 204
    # An encoded slash is part of the id.
    reply = await bench.request("POST", f"{BASE}/default/a%2Fcancel")
    assert (reply.status, reply.headers["allow"]) == (405, "DELETE, GET, HEAD, PUT")
    reply = await bench.request("PATCH", f"{BASE}/default/a/cancel")
    assert (reply.status, reply.headers["allow"]) == (405, "DELETE, GET, HEAD, POST, PUT")
