"""The bulk operation that runs timers now: every timer that matches becomes due, and only once."""

import pytest

from duetime.domain.instants import plus_ms
from duetime.domain.outcome import Failed, Rescheduled
from duetime.service.bulk.matching import BATCH_SIZE
from tests.unit.api.v1.many_timers.operations import (
    OPERATIONS,
    claim,
    finish,
    run,
    settle,
    start,
    step,
)
from tests.unit.api.v1.v1_bench import V1Bench, create_body

NOW = "2030-01-01T00:00:00Z"
RETRY = {"maxRetries": 3, "initialInterval": "1h"}


async def test_pending_timers_become_due_at_once(bench: V1Bench) -> None:
    for name in ("a-1", "a-2", "b-1"):
        await bench.create_v1(name, executeAt="2031-01-01T00:00:00Z")
    before = await bench.timer("a-1")
    ended = await run(bench, action="run-now", filter={"idPrefix": "a-", "status": "pending"})
    assert (ended["matched"], ended["changed"], ended["skipped"]) == (2, 2, 0)
    after = await bench.timer("a-1")
    assert (after["executeAt"], after["nextAttemptAt"]) == (NOW, NOW)
    assert after["deliveryId"] != before["deliveryId"]
    assert (await bench.timer("b-1"))["executeAt"] == "2031-01-01T00:00:00Z"
    assert {each.id for each in await claim(bench)} == {"a-1", "a-2"}


async def test_every_batch_is_run(bench: V1Bench) -> None:
    many = 2 * BATCH_SIZE + 10
    names = [f"t{number}" for number in range(many)]
    for begin in range(0, many, 50):
        timers = [create_body(name) for name in names[begin : begin + 50]]
        await bench.post("/batch", {"timers": timers})
    ended = await run(bench, action="run-now", all=True)
    assert (ended["matched"], ended["changed"], ended["scanned"]) == (many, many, many)
    assert len(await claim(bench)) == many


async def test_a_timer_that_waits_for_a_retry_is_tried_again_as_the_same_firing(
    bench: V1Bench,
) -> None:
    await bench.create_v1(retryPolicy=RETRY)
    await fail_once(bench)
    waiting = await bench.timer()
    assert waiting["nextAttemptAt"] > "2030-01-01T00:30:00Z"
    bench.clock.advance(1)
    ended = await run(bench, action="run-now", filter={"errorContains": "HTTP 503"})
    assert ended["changed"] == 1
    timer = await bench.timer()
    assert timer["nextAttemptAt"] == "2030-01-01T00:00:11Z"
    assert timer["executeAt"] == waiting["executeAt"]
    assert timer["deliveryId"] == waiting["deliveryId"]
    (again,) = await claim(bench)
    assert again.attempt == 2


async def test_a_timer_that_is_due_or_executing_is_left_alone(bench: V1Bench) -> None:
    await bench.create_v1("executing")
    bench.clock.advance(10)
    await claim(bench)
    await bench.create_v1("due", executeAt="2030-01-01T00:00:11Z")
    bench.clock.advance(2)
    due = await bench.timer("due")
    ended = await run(bench, action="run-now", all=True)
    assert (ended["matched"], ended["changed"], ended["skipped"]) == (1, 0, 1)
    assert ended["executing"] == 0
    assert await bench.timer("due") == due


async def test_a_timer_that_its_receiver_reschedules_is_not_run_again(bench: V1Bench) -> None:
    """It comes later in the order, where the scan meets it again."""
    for number in range(BATCH_SIZE + 1):
        await bench.create_v1(f"t{number}")
    started = await start(bench, action="run-now", all=True)
    await step(bench)
    bench.clock.advance(1)
    now = bench.clock.now()
    next_at = plus_ms(now, 3_600_000)
    again = Rescheduled(sent_at=now, answered_at=now, next_execute_at=next_at)
    first = await claim(bench)
    assert len(first) == BATCH_SIZE
    await settle(bench, first, again)
    ended = await finish(bench, started)
    assert ended["changed"] == BATCH_SIZE + 1
    assert len(await claim(bench)) == 1
    assert (await bench.timer(first[0].id))["executeAt"] == "2030-01-01T01:00:01Z"


async def test_a_timer_that_failed_again_waits_for_its_next_retry(bench: V1Bench) -> None:
    await bench.create_v1(retryPolicy=RETRY)
    await fail_once(bench)
    bench.clock.advance(1)
    started = await start(bench, action="run-now", all=True)
    bench.clock.advance(7_200)
    # The retry was made by itself before the operation met the timer.
    await fail_once(bench)
    waiting = await bench.timer()
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"]) == (0, 0)
    assert await bench.timer() == waiting


@pytest.mark.parametrize(
    ("member", "changed"),
    [
        ({"key": "customer", "value": "17"}, {"number", "text"}),
        ({"key": "customer", "value": ""}, {"empty"}),
        ({"key": "order", "value": "17"}, set()),
    ],
)
async def test_timers_are_selected_by_a_member_of_their_metadata(
    bench: V1Bench, member: dict[str, str], changed: set[str]
) -> None:
    for name, customer in (("number", 17), ("text", "17"), ("empty", ""), ("other", "x")):
        await bench.create_v1(name, metadata={"customer": customer})
    await bench.create_v1("bare")
    ended = await run(bench, action="cancel", filter={"metadata": member})
    assert ended["filter"] == {"metadata": member}
    assert (ended["matched"], ended["changed"]) == (len(changed), len(changed))
    for name in ("number", "text", "empty", "other", "bare"):
        is_canceled = (await bench.timer(name))["status"] == "canceled"
        assert is_canceled == (name in changed), name


async def test_an_operation_says_who_started_it(bench: V1Bench) -> None:
    key = await bench.issue_key("write", name="billing")
    body = {"action": "cancel", "all": True}
    started = await bench.request("POST", OPERATIONS, body, key=key)
    assert started.json["startedBy"] == "billing"
    bench.clock.advance(1)
    await start(bench, action="cancel", all=True)
    bench.clock.advance(1)
    await bench.request("DELETE", "/api/v1/namespaces/notifications")
    listed = (await bench.request("GET", OPERATIONS)).json["operations"]
    assert [each["startedBy"] for each in listed] == ["API_KEY", "API_KEY", "billing"]


async def fail_once(bench: V1Bench) -> None:
    """Let the next attempt of the due timers fail."""
    bench.clock.advance(10)
    now = bench.clock.now()
    await settle(bench, await claim(bench), Failed(sent_at=now, answered_at=now, error="HTTP 503"))
