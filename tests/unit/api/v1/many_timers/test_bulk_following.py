"""Bulk operations and timers that are executing: they are followed until they are pending again."""

import pytest

from duetime.domain.instants import parse_instant
from duetime.domain.outcome import Completed, Failed, Rescheduled
from duetime.service.bulk.matching import BATCH_SIZE
from duetime.service.bulk.passes import FOLLOWING_SECONDS
from duetime.service.bulk.runner import BulkRunner
from tests.unit.api.v1.many_timers.operations import (
    claim,
    finish,
    operation,
    settle,
    start,
    step,
)
from tests.unit.api.v1.v1_bench import V1Bench, create_body
from tests.unit.service.service_bench import EVERY_SHARD

RETRIES = {"maxRetries": 5, "initialInterval": "1h", "maxInterval": "1h"}


def failed(bench: V1Bench) -> Failed:
    now = bench.clock.now()
    return Failed(sent_at=now, answered_at=now, error="HTTP 503")


async def executing(bench: V1Bench, *names: str) -> None:
    for name in names:
        await bench.create_v1(name, retryPolicy=RETRIES)
    bench.clock.advance(11)


async def test_timers_that_become_pending_again_are_canceled(bench: V1Bench) -> None:
    await executing(bench, "back", "retried", "done")
    claims = {each.id: each for each in await claim(bench)}
    counted = await start(bench, action="cancel", all=True, dryRun=True)
    assert counted.json["matched"] == 3
    started = await start(bench, action="cancel", all=True)
    assert started.json["matched"] == 3
    for _ in range(3):
        await step(bench)
    waiting = await operation(bench, started)
    assert (waiting["status"], waiting["executing"], waiting["changed"]) == ("running", 3, 0)
    await settle(bench, [claims["back"]])
    await settle(bench, [claims["retried"]], failed(bench))
    await step(bench)
    waiting = await operation(bench, started)
    assert (waiting["status"], waiting["executing"], waiting["changed"]) == ("running", 1, 2)
    now = bench.clock.now()
    await settle(bench, [claims["done"]], Completed(sent_at=now, answered_at=now))
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"], ended["executing"]) == (2, 1, 0)
    assert [(await bench.timer(name))["status"] for name in ("back", "retried", "done")] == [
        "canceled",
        "canceled",
        "completed",
    ]


async def test_a_timer_that_its_receiver_reschedules_is_canceled(bench: V1Bench) -> None:
    """It comes back far ahead, or behind the position of the scan."""
    await executing(bench, "again")
    claims = await claim(bench)
    started = await start(bench, action="cancel", filter={"endpoint": "example.com"})
    await step(bench)
    now = bench.clock.now()
    at = parse_instant("2031-01-01T00:00:00Z")
    await settle(bench, claims, Rescheduled(sent_at=now, answered_at=now, next_execute_at=at))
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"]) == (1, 0)
    assert (await bench.timer("again"))["status"] == "canceled"


async def test_a_followed_timer_is_moved_once(bench: V1Bench) -> None:
    await executing(bench, "one")
    claims = await claim(bench)
    started = await start(bench, action="reschedule", all=True, moveBy="1h")
    await step(bench)
    await settle(bench, claims, failed(bench))
    planned = (await bench.timer("one"))["nextAttemptAt"]
    assert (await finish(bench, started))["changed"] == 1
    moved = await bench.timer("one")
    assert planned == "2030-01-01T01:00:11Z"
    assert moved["executeAt"] == "2030-01-01T02:00:11Z"


async def test_an_executing_timer_that_does_not_match_is_not_waited_for(bench: V1Bench) -> None:
    await executing(bench, "one")
    await claim(bench)
    await bench.create_v1("after", executeAt="2031-01-01T00:00:00Z")
    started = await start(bench, action="cancel", filter={"idPrefix": "a"})
    assert (await finish(bench, started))["changed"] == 1


async def test_an_operation_does_not_wait_for_ever(bench: V1Bench) -> None:
    await executing(bench, "one")
    await claim(bench)
    started = await start(bench, action="cancel", all=True)
    await step(bench)
    bench.clock.advance(FOLLOWING_SECONDS)
    await step(bench)
    assert (await operation(bench, started))["status"] == "running"
    bench.clock.advance(1)
    ended = await finish(bench, started)
    assert (ended["status"], ended["skipped"], ended["executing"]) == ("completed", 1, 0)


@pytest.mark.parametrize("others", [0, BATCH_SIZE], ids=["after the pass", "within the pass"])
async def test_executing_timers_are_followed_after_a_restart(bench: V1Bench, others: int) -> None:
    await executing(bench, "one")
    claims = await claim(bench)
    later = {"executeAt": "2031-01-01T00:00:00Z"}
    bodies = [create_body(f"t{number}", **later) for number in range(others)]
    if bodies:
        await bench.post("/batch", {"timers": bodies})
    started = await start(bench, action="cancel", all=True)
    await step(bench)
    assert (await operation(bench, started))["executing"] == 1
    store = bench.store
    bench.bulk_runner = BulkRunner(
        store, store, bench.clock, bench.wakeups, bench.namespaces, EVERY_SHARD
    )
    await settle(bench, claims)
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"]) == (1 + others, 0)
    assert (await bench.timer("one"))["status"] == "canceled"


async def test_an_operation_that_another_process_ran_meanwhile_is_taken_up_anew(
    bench: V1Bench,
) -> None:
    """A runner that was paused must not go on with what it knew."""
    await executing(bench, "one", "two")
    claims = {each.id: each for each in await claim(bench)}
    started = await start(bench, action="cancel", all=True)
    await step(bench)
    store = bench.store
    other = BulkRunner(store, store, bench.clock, bench.wakeups, bench.namespaces, EVERY_SHARD)
    await settle(bench, [claims["one"]])
    other.wake()
    await other.step()
    await settle(bench, [claims["two"]])
    ended = await finish(bench, started)
    assert (ended["status"], ended["changed"], ended["skipped"]) == ("completed", 2, 0)
