"""A clock that is ahead deletes nothing: pruned timers do not come back."""

import pytest
from structlog.testing import capture_logs

from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.testing import make_timer, on_virtual_time
from tests.unit.engine.engine_bench import EngineBench

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
FINISHED = 731


async def bench_with_finished_timers() -> EngineBench:
    bench = EngineBench(retention_seconds=30 * DAY_SECONDS)
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * FINISHED)
    await bench.clock.sleep(120)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED
    return bench


async def start_after(bench: EngineBench, seconds: float) -> None:
    """Stop the service for so long, then let it run until it has believed its clock for a bit."""
    await bench.engine.stop(1)
    await bench.clock.sleep(seconds)
    await bench.restart()
    await bench.clock.sleep(HOUR_SECONDS + 300)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED


@on_virtual_time
async def test_a_clock_that_is_ahead_for_a_moment_prunes_nothing() -> None:
    bench = await bench_with_finished_timers()
    with capture_logs() as logs:
        bench.clock.jump_wall(31 * DAY_SECONDS)
        await bench.clock.sleep(80)
        bench.clock.jump_wall(-31 * DAY_SECONDS)
        await bench.clock.sleep(2 * HOUR_SECONDS)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED
    (jumped, trusted) = [entry for entry in logs if entry["event"].startswith("clock.")]
    assert (jumped["event"], jumped["log_level"]) == ("clock.jumped", "warning")
    assert jumped["ahead_seconds"] == pytest.approx(31 * DAY_SECONDS)
    assert (trusted["event"], trusted["log_level"]) == ("clock.trusted", "info")


@on_virtual_time
async def test_pruning_goes_on_at_once_when_the_clock_is_right_again() -> None:
    bench = await bench_with_finished_timers()
    bench.clock.jump_wall(31 * DAY_SECONDS)
    await bench.clock.sleep(80)
    bench.clock.jump_wall(-31 * DAY_SECONDS)
    await bench.clock.sleep(120)
    # The pruner asks again, and finds none old enough.
    asked = len(bench.store.pruned)
    await bench.clock.sleep(120)
    assert len(bench.store.pruned) > asked


@on_virtual_time
async def test_a_clock_that_stays_ahead_for_an_hour_is_believed() -> None:
    bench = await bench_with_finished_timers()
    bench.clock.jump_wall(31 * DAY_SECONDS)
    await bench.clock.sleep(HOUR_SECONDS - 60)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED
    await bench.clock.sleep(240)
    assert await bench.count(TimerStatus.COMPLETED) == 0


@on_virtual_time
async def test_each_jump_starts_the_hour_anew() -> None:
    bench = await bench_with_finished_timers()
    for _ in range(3):
        bench.clock.jump_wall(31 * DAY_SECONDS)
        await bench.clock.sleep(HOUR_SECONDS - 120)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED


@on_virtual_time
async def test_a_clock_that_is_slewed_is_believed() -> None:
    bench = await bench_with_finished_timers()
    with capture_logs() as logs:
        for _ in range(600):
            await bench.clock.sleep(60)
            bench.clock.jump_wall(0.5)
    assert not [entry for entry in logs if entry["event"].startswith("clock.")]


@on_virtual_time
async def test_a_process_that_starts_with_a_clock_far_ahead_waits_before_it_prunes() -> None:
    bench = await bench_with_finished_timers()
    await bench.engine.stop(1)
    bench.clock.jump_wall(31 * DAY_SECONDS)
    with capture_logs() as logs:
        await bench.restart()
        await bench.clock.sleep(HOUR_SECONDS - 60)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["clock.jumped"]
    await bench.clock.sleep(240)
    assert await bench.count(TimerStatus.COMPLETED) == 0


@on_virtual_time
async def test_timers_written_by_a_clock_that_is_ahead_do_not_confirm_it() -> None:
    bench = await bench_with_finished_timers()
    bench.clock.jump_wall(31 * DAY_SECONDS)
    await bench.clock.sleep(61)
    later = make_timer("later", created_at=bench.at(0), execute_at=bench.at(1))
    await bench.store.create([CreateRequest(later, OnExisting.KEEP)])
    await bench.clock.sleep(5)
    for _ in range(3):
        await bench.engine.stop(1)
        await bench.restart()
        await bench.clock.sleep(HOUR_SECONDS // 2)
        assert await bench.count(TimerStatus.COMPLETED) == FINISHED + 1


@on_virtual_time
async def test_a_clock_that_is_set_right_after_a_restart_is_believed_at_once() -> None:
    bench = await bench_with_finished_timers()
    bench.clock.jump_wall(31 * DAY_SECONDS)
    await bench.engine.stop(1)
    await bench.clock.sleep(600)
    await bench.restart()
    await bench.clock.sleep(120)
    bench.clock.jump_wall(-31 * DAY_SECONDS)
    asked = len(bench.store.pruned)
    await bench.clock.sleep(120)
    assert len(bench.store.pruned) > asked


@on_virtual_time
async def test_a_service_that_was_down_for_a_week_prunes_again_after_an_hour() -> None:
    bench = await bench_with_finished_timers()
    await start_after(bench, 25 * DAY_SECONDS)
    await bench.engine.stop(1)
    await bench.clock.sleep(7 * DAY_SECONDS)
    await bench.restart()
    await bench.clock.sleep(HOUR_SECONDS - 60)
    assert await bench.count(TimerStatus.COMPLETED) == FINISHED
    await bench.clock.sleep(240)
    assert await bench.count(TimerStatus.COMPLETED) == 0


@on_virtual_time
async def test_a_service_that_was_down_for_minutes_prunes_at_once() -> None:
    bench = await bench_with_finished_timers()
    await start_after(bench, 30 * DAY_SECONDS - 2 * HOUR_SECONDS)
    await bench.engine.stop(1)
    await bench.clock.sleep(HOUR_SECONDS - 200)
    with capture_logs() as logs:
        await bench.restart()
        await bench.clock.sleep(120)
    assert await bench.count(TimerStatus.COMPLETED) == 0
    assert not [entry for entry in logs if entry["event"].startswith("clock.")]


@on_virtual_time
async def test_a_store_with_timers_and_no_confirmed_time_is_not_pruned_for_an_hour() -> None:
    """The release before confirmed none."""
    bench = EngineBench(retention_seconds=30 * DAY_SECONDS)
    await bench.store.add_namespace(Namespace("default"))
    old = make_timer("old", created_at=bench.at(0), execute_at=bench.at(1))
    await bench.store.create([CreateRequest(old, OnExisting.KEEP)])
    await bench.store.cancel_if_pending(old.key, bench.at(0))
    await bench.clock.sleep(31 * DAY_SECONDS)
    with capture_logs() as logs:
        await bench.start()
        await bench.clock.sleep(HOUR_SECONDS - 60)
    assert await bench.count(TimerStatus.CANCELED) == 1
    (entry,) = [entry for entry in logs if entry["event"].startswith("clock.")]
    assert (entry["event"], entry["log_level"]) == ("clock.unconfirmed", "info")
    await bench.clock.sleep(240)
    assert await bench.count(TimerStatus.CANCELED) == 0
