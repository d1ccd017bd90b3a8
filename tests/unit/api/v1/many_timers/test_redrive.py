"""Firing failed timers once more."""

import pytest

from tests.unit.api.v1.v1_bench import V1Bench, error_of


async def test_a_timer_is_redriven_by_its_id(bench: V1Bench) -> None:
    before = (await bench.create_v1()).json
    await bench.fail("one")
    failed = await bench.timer()
    assert (await bench.post("/redrive", {"timerId": "one"})).json == {"matched": 1, "redriven": 1}
    after = await bench.timer()
    assert (after["status"], after["executedAt"]) == ("pending", None)
    assert after["attempts"] == failed["attempts"]
    assert after["deliveryId"] not in (before["deliveryId"], failed["deliveryId"])
    assert bench.wakeups.announced


async def test_only_failed_timers_are_redriven(bench: V1Bench) -> None:
    await bench.create_v1()
    reply = await bench.post("/redrive", {"timerId": "one"})
    assert error_of(reply)[:2] == (409, "TIMER_NOT_FAILED")
    assert reply.json["details"] == {"status": "pending"}
    reply = await bench.post("/redrive", {"timerId": "one", "dryRun": True})
    assert error_of(reply)[:2] == (409, "TIMER_NOT_FAILED")
    reply = await bench.post("/redrive", {"timerId": "two"})
    assert error_of(reply)[:2] == (404, "TIMER_NOT_FOUND")


async def test_timers_are_counted_and_redriven_by_a_filter(bench: V1Bench) -> None:
    names = [f"timer {number}" for number in range(5)]
    for name in names:
        await bench.create_v1(name)
    await bench.fail(*names[:3], error="HTTP 500")
    await bench.fail(*names[3:], error="timed out after 30s")
    everything = {"all": True}
    assert (await bench.post("/redrive", {**everything, "dryRun": True})).json == {
        "matched": 5,
        "redriven": 0,
    }
    some = {"errorContains": "timed out"}
    assert (await bench.post("/redrive", {**some, "dryRun": True})).json["matched"] == 2
    assert (await bench.post("/redrive", some)).json == {"matched": 2, "redriven": 2}
    assert (await bench.post("/redrive", everything)).json == {"matched": 3, "redriven": 3}
    assert (await bench.post("/redrive", everything)).json == {"matched": 0, "redriven": 0}


async def test_timers_are_redriven_by_their_instants(bench: V1Bench) -> None:
    await bench.create_v1()
    await bench.fail("one")
    later = {"dueAfter": "2031-01-01T00:00:00Z"}
    assert (await bench.post("/redrive", later)).json["matched"] == 0
    earlier = {"dueBefore": "2031-01-01T00:00:00Z"}
    assert (await bench.post("/redrive", earlier)).json["redriven"] == 1


NOTHING_SELECTED = (
    "body must have a timerId, one of dueAfter, dueBefore and errorContains, or all: true"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, NOTHING_SELECTED),
        ({"namespace": "default"}, NOTHING_SELECTED),
        ({"filter": {}}, "filter is not a known field: this object takes namespace, timerId, "),
        ({"id": "x"}, "id is not a known field; did you mean 'timerId'?"),
        (
            {"timerId": "x", "all": True},
            "timerId cannot be given together with dueAfter, dueBefore, errorContains or all",
        ),
        ({"dueAfter": "x"}, "dueAfter must be a date and time in ISO 8601"),
        ({"errorContains": ""}, "errorContains must not be empty"),
        ({"all": "yes"}, "all must be true or false"),
        ({"due_after": "x"}, "due_after is not a known field; did you mean 'dueAfter'?"),
    ],
)
async def test_bad_requests(bench: V1Bench, body: object, message: str) -> None:
    status, code, told = error_of(await bench.post("/redrive", body))
    assert (status, code) == (400, "INVALID_INPUT")
    assert told.startswith(message)
