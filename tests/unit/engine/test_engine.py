"""Starting, stopping, and the view of an operator."""

import asyncio

from duetime.domain.outcome import INTERRUPTED
from duetime.domain.timer import TimerStatus
from duetime.testing import Hang, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench


@on_virtual_time
async def test_timers_that_became_due_while_nothing_ran_are_sent_at_the_start() -> None:
    bench = EngineBench()
    await bench.create("t", 60, announced=False)
    await bench.clock.sleep(86_400)
    await bench.start()
    await bench.clock.sleep(0.1)
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_an_engine_whose_store_is_away_for_long_is_not_running() -> None:
    bench = EngineBench()
    await bench.start()
    bench.store.away = True
    await bench.create("t", 1, announced=False)
    runs = []
    for seconds, away in ((8, True), (12, False), (10, False)):
        await bench.clock.sleep(seconds)
        runs.append(bench.engine.is_running)
        bench.store.away = away
    assert runs == [True, False, True]
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_stop_hands_back_unsent_claims_and_their_attempts_do_not_count() -> None:
    bench = EngineBench(horizon_ms=10_000)
    await bench.start()
    before = await bench.create("t", 5)
    await bench.clock.sleep(1)
    assert await bench.status("t") is TimerStatus.EXECUTING
    await bench.engine.stop(10)
    after = await bench.timer("t")
    assert (after.status, after.attempt, after.due_at) == (TimerStatus.PENDING, 0, before.due_at)
    assert not bench.destination.attempts
    await bench.restart()
    await bench.clock.sleep(10)
    assert [attempt.claim.attempt for attempt in bench.destination.attempts] == [1]
    assert bench.latenesses_ms("t") == [0]


@on_virtual_time
async def test_a_stop_lets_attempts_finish_within_the_grace() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(3))
    await bench.start()
    await bench.create("t", 1, url=SLOW)
    await bench.clock.sleep(2)
    stopping_at = bench.clock.monotonic()
    await bench.engine.stop(10)
    assert bench.clock.monotonic() - stopping_at == 2
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_attempts_that_outlast_the_grace_are_made_again_by_the_next_engine() -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Hang(), Succeed())
    await bench.start()
    await bench.create("t", 1, url=HANGING)
    await bench.clock.sleep(2)
    await bench.engine.stop(5)
    assert bench.clock.monotonic() == 7
    assert bench.destination.attempts[0].abandoned
    await bench.restart()
    await bench.clock.sleep(1)
    first, second = bench.destination.attempts
    assert (first.claim.attempt, second.claim.attempt) == (1, 2)
    assert first.claim.delivery_id == second.claim.delivery_id
    timer = await bench.timer("t")
    assert timer.status is TimerStatus.COMPLETED
    assert [attempt.error for attempt in timer.attempts] == [INTERRUPTED, None]


@on_virtual_time
async def test_a_stop_waits_within_the_grace_for_a_store_that_is_away() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(0.99)
    bench.store.away = True
    await bench.clock.sleep(1)
    stopping = asyncio.create_task(bench.engine.stop(20))
    await bench.clock.sleep(10)
    bench.store.away = False
    await stopping
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_stop_without_a_store_ends_and_the_next_engine_recovers() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(0.99)
    bench.store.away = True
    await bench.clock.sleep(5)
    await bench.engine.stop(2)
    assert bench.clock.monotonic() < 15
    bench.store.away = False
    await bench.restart()
    await bench.clock.sleep(1)
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_stopped_engine_gives_its_shards_back_and_sends_nothing_more() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 5)
    await bench.engine.stop(1)
    assert {state.owner for state in await bench.store.shards()} == {None}
    assert not bench.engine.is_running
    assert bench.engine.shards_owned == 0
    await bench.clock.sleep(100)
    assert not bench.destination.attempts


@on_virtual_time
async def test_a_wall_clock_set_forward_makes_timers_due_within_a_second() -> None:
    bench = EngineBench(poll_seconds=3_600)
    await bench.start()
    await bench.create("t", 7_200)
    await bench.clock.sleep(10)
    bench.clock.jump_wall(7_200)
    await bench.clock.sleep(1)
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_wall_clock_set_back_delays_timers_and_loses_none() -> None:
    bench = EngineBench(horizon_ms=500)
    await bench.start()
    await bench.create_many("t", [bench.at(1 + number / 1_000) for number in range(1_000)])
    await bench.clock.sleep(1.0035)
    sent = len(bench.destination.attempts)
    assert sent == 4
    bench.clock.jump_wall(-3_600)
    await bench.clock.sleep(3_500)
    assert len(bench.destination.attempts) == sent
    await bench.clock.sleep(200)
    assert await bench.count(TimerStatus.COMPLETED) == 1_000
    assert set(bench.latenesses_ms(GOOD)) == {0}


@on_virtual_time
async def test_after_a_wall_clock_was_set_back_new_timers_are_still_on_time() -> None:
    bench = EngineBench(horizon_ms=500)
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 5_000)
    await bench.clock.sleep(0.9)
    bench.clock.jump_wall(-3_600)
    await bench.create("new", 60)
    await bench.clock.sleep(61)
    assert bench.latenesses_ms("new") == [0]
    assert await bench.count(TimerStatus.EXECUTING) == 0


@on_virtual_time
async def test_health_shows_shards_attempts_under_way_and_lateness() -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Hang())
    assert bench.engine.lateness_ms(99) is None
    await bench.start()
    assert bench.engine.is_running
    assert bench.engine.shards_owned == 16
    await bench.create_many("t", [bench.at(1)] * 7, url=HANGING)
    await bench.clock.sleep(2)
    assert bench.engine.in_flight == 7
    assert bench.engine.lateness_ms(99) == 0
    await bench.clock.sleep(60)
    assert bench.engine.in_flight == 0
