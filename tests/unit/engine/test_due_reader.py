"""When the engine claims from the store, and how much."""

from duetime.domain.timer import TimerStatus
from duetime.engine.dispatcher import MAX_HELD
from duetime.testing import Hang, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench


@on_virtual_time
async def test_ten_thousand_timers_are_sent_at_their_instants() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create_many("t", [bench.at(1 + number * 0.0007) for number in range(10_000)])
    await bench.clock.sleep(10)
    latenesses = bench.latenesses_ms(GOOD)
    assert len(latenesses) == 10_000
    assert min(latenesses) >= 0
    assert max(latenesses) <= 1


@on_virtual_time
async def test_a_timer_that_is_due_sooner_than_the_planned_one_is_sent_at_its_instant() -> None:
    bench = EngineBench(poll_seconds=3_600)
    await bench.start()
    await bench.create("later", 1_000)
    # Not on a full second, when the reader looks at the wall clock anyway.
    await bench.clock.sleep(10.3)
    await bench.create("sooner", 0.2)
    await bench.create("at once", 0)
    await bench.clock.sleep(5)
    assert bench.latenesses_ms("sooner") == [0]
    assert bench.latenesses_ms("at once") == [0]
    await bench.clock.sleep(1_000)
    assert bench.latenesses_ms("later") == [0]


@on_virtual_time
async def test_a_timer_announced_while_a_claim_is_under_way_is_not_overlooked() -> None:
    bench = EngineBench(poll_seconds=3_600, horizon_ms=200)
    bench.store.claim_seconds = 0.1
    await bench.start()
    await bench.create("first", 10)
    await bench.clock.sleep(9.85)
    await bench.create("second", 0.5)
    await bench.clock.sleep(2)
    assert bench.latenesses_ms("second") == [0]


@on_virtual_time
async def test_an_unannounced_timer_is_found_by_the_fallback_poll() -> None:
    bench = EngineBench(poll_seconds=5)
    await bench.start()
    await bench.clock.sleep(1)
    await bench.create("silent", 0.5, announced=False)
    await bench.clock.sleep(60)
    (lateness_ms,) = bench.latenesses_ms("silent")
    assert lateness_ms <= 5_000


@on_virtual_time
async def test_timers_are_taken_from_the_store_no_earlier_than_the_horizon() -> None:
    bench = EngineBench(horizon_ms=50)
    await bench.start()
    await bench.create("t", 10)
    await bench.clock.sleep(9.949)
    assert await bench.status("t") is TimerStatus.PENDING
    await bench.clock.sleep(0.002)
    assert await bench.status("t") is TimerStatus.EXECUTING
    assert not bench.destination.attempts
    await bench.clock.sleep(1)
    assert bench.latenesses_ms("t") == [0]
    assert all(until - now == 50_000 for now, until, _, _ in bench.store.claims)


@on_virtual_time
async def test_an_idle_engine_leaves_the_store_alone_between_polls() -> None:
    bench = EngineBench(poll_seconds=5)
    await bench.start()
    await bench.create("tomorrow", 86_400)
    await bench.clock.sleep(3_600)
    assert len(bench.store.claims) <= 3_600 / 5 + 3


@on_virtual_time
async def test_a_backlog_stays_in_the_store() -> None:
    bench = EngineBench(concurrency=2_000, concurrency_per_endpoint=1_000)
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 100_000, url=HANGING)
    most_held = 0
    for _ in range(50):
        await bench.clock.sleep(0.025)
        most_held = max(most_held, await bench.count(TimerStatus.EXECUTING))
    assert bench.destination.most_at_once(HANGING) == 500
    assert most_held <= 500 + 2 * MAX_HELD + 500


@on_virtual_time
async def test_a_backlog_for_one_quick_endpoint_is_sent_without_handing_back() -> None:
    bench = EngineBench()
    bench.destination.script(GOOD, Succeed(0.005))
    await bench.start()
    await bench.create_many("t", [bench.at(-100)] * 10_000)
    await bench.clock.sleep(2)
    assert await bench.count(TimerStatus.COMPLETED) == 10_000
    assert sum(came for _, _, _, came in bench.store.claims) == 10_000


@on_virtual_time
async def test_a_claim_is_made_only_when_there_is_room_worth_it() -> None:
    bench = EngineBench(batch_size=100)
    bench.destination.script(SLOW, Succeed(0.001))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 5_000, url=SLOW)
    await bench.clock.sleep(5)
    assert await bench.count(TimerStatus.COMPLETED) == 5_000
    assert all(50 <= limit <= 100 for _, _, limit, _ in bench.store.claims)


@on_virtual_time
async def test_the_reader_carries_on_when_the_store_comes_back() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 10)
    await bench.clock.sleep(5)
    bench.store.away = True
    await bench.clock.sleep(600)
    assert not bench.destination.attempts
    bench.store.away = False
    await bench.clock.sleep(5)
    assert await bench.status("t") is TimerStatus.COMPLETED
