"""Attempts that were planned by a clock that was ahead are not late once it is right again."""

from structlog.testing import capture_logs

from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.testing import Fail, RunOut, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, EngineBench

HOUR_SECONDS = 3_600
POLICY = RetryPolicy(max_retries=3, initial_interval_ms=30_000)
RETRY_SECONDS = 60.0
"""Longest wait for the first retry, jitter included."""


async def bench_with_a_planned_retry() -> EngineBench:
    bench = EngineBench()
    await bench.start()
    bench.destination.script("t", Fail(), Succeed())
    await bench.create("t", 1, retry_policy=POLICY)
    await bench.clock.sleep(5)
    assert len(bench.destination.attempts_of("t")) == 1
    return bench


@on_virtual_time
async def test_a_retry_planned_while_the_clock_was_ahead_comes_after_its_wait() -> None:
    bench = EngineBench()
    await bench.start()
    bench.destination.script("t", Fail(), Succeed())
    await bench.create("t", 1, retry_policy=POLICY)
    bench.clock.jump_wall(HOUR_SECONDS)
    await bench.clock.sleep(5)
    with capture_logs() as logs:
        bench.clock.jump_wall(-HOUR_SECONDS)
        await bench.clock.sleep(2)
        # The wait begins anew, because it is not known how much of it is over.
        assert len(bench.destination.attempts_of("t")) == 1
        await bench.clock.sleep(RETRY_SECONDS)
    assert await bench.status("t") is TimerStatus.COMPLETED
    (entry,) = [entry for entry in logs if entry["event"] == "timers.replanned"]
    assert entry["count"] == 1


@on_virtual_time
async def test_a_retry_planned_by_a_right_clock_stays_where_it_is() -> None:
    bench = await bench_with_a_planned_retry()
    due_at = (await bench.timer("t")).due_at
    bench.clock.jump_wall(10)
    await bench.clock.sleep(3)
    bench.clock.jump_wall(-10)
    await bench.clock.sleep(5)
    timer = await bench.timer("t")
    assert (timer.status, timer.due_at) == (TimerStatus.PENDING, due_at)


@on_virtual_time
async def test_all_of_many_are_brought_forward_but_none_before_its_own_instant() -> None:
    bench = EngineBench()
    await bench.start()
    bench.destination.script(GOOD, *[Fail()] * 1_000, Succeed())
    await bench.create_many("due", [bench.at(10)] * 500, retry_policy=POLICY)
    await bench.create_many("not-yet", [bench.at(600)] * 500, retry_policy=POLICY)
    bench.clock.jump_wall(HOUR_SECONDS)
    await bench.clock.sleep(5)
    assert len(bench.destination.attempts) == 1_000
    bench.clock.jump_wall(-HOUR_SECONDS)
    await bench.clock.sleep(10 + RETRY_SECONDS)
    assert await bench.count(TimerStatus.COMPLETED) == 500
    await bench.clock.sleep(600)
    assert await bench.count(TimerStatus.COMPLETED) == 1_000
    for attempt in bench.destination.attempts[1_000:]:
        assert attempt.sent_at >= attempt.claim.execute_at


@on_virtual_time
async def test_a_deferral_planned_while_the_clock_was_ahead_is_no_longer_than_planned() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 1)
    bench.destination.script("t", RunOut())
    bench.clock.jump_wall(HOUR_SECONDS)
    await bench.clock.sleep(5)
    bench.destination.script("t", Succeed())
    bench.clock.jump_wall(-HOUR_SECONDS)
    assert not bench.destination.attempts
    await bench.clock.sleep(30)
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_small_correction_of_the_clock_moves_nothing() -> None:
    bench = await bench_with_a_planned_retry()
    before = await bench.timer("t")
    bench.clock.jump_wall(-4)
    await bench.clock.sleep(3)
    assert await bench.timer("t") == before
