"""However many endpoints hang, those that answer have room, and new ones get their turn."""

import pytest

from duetime.domain.timer import TimerStatus
from duetime.testing import Fail, Hang, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, SLOW, EngineBench

SLOTS = 400
HANGING_ENDPOINTS = 1_000
TIMEOUT_SECONDS = 30


async def hang(bench: EngineBench, count: int, *, prefix: str = "hanging", each: int = 1) -> None:
    """Timers of as many endpoints come due within the next second, and get no answer."""
    for number in range(count):
        url = f"https://{prefix}-{number}.example"
        bench.destination.script(url, Hang())
        await bench.create_many(f"{url}-", [bench.at(number / count)] * each, url=url)


async def fire_steadily(bench: EngineBench, seconds: float) -> None:
    """Ten timers a second for an endpoint that answers."""
    bench.destination.script(GOOD, Succeed(0.01))
    instants = [bench.at(0.2 + number / 10) for number in range(int(seconds * 10))]
    await bench.create_many("good", instants)


@on_virtual_time
async def test_an_endpoint_that_answers_is_on_time_beside_many_that_hang() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=100)
    await bench.start()
    await fire_steadily(bench, 40)
    await bench.clock.sleep(0.5)
    await hang(bench, HANGING_ENDPOINTS)
    await bench.clock.sleep(40)
    latenesses_ms = bench.latenesses_ms(GOOD)
    assert len(latenesses_ms) == 400
    assert max(latenesses_ms) < 50
    assert bench.engine.in_flight <= SLOTS / 2


@on_virtual_time
async def test_endpoints_that_hang_with_many_timers_each_delay_no_endpoint_that_answers() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=100)
    await bench.start()
    await fire_steadily(bench, 40)
    await bench.clock.sleep(0.5)
    await hang(bench, HANGING_ENDPOINTS // 5, each=10)
    await bench.clock.sleep(40)
    latenesses_ms = bench.latenesses_ms(GOOD)
    assert len(latenesses_ms) == 400
    assert max(latenesses_ms) < 50


@on_virtual_time
async def test_an_endpoint_that_answered_some_time_ago_goes_before_unknown_ones() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=100)
    await bench.start()
    await bench.create("first", 0)
    await bench.create("second", 60)
    await bench.clock.sleep(50)
    await hang(bench, HANGING_ENDPOINTS)
    await bench.clock.sleep(30)
    assert bench.latenesses_ms("second") == [0]


@on_virtual_time
async def test_a_new_endpoint_gets_its_turn_behind_many_that_hang() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=100)
    await bench.start()
    await hang(bench, HANGING_ENDPOINTS)
    await bench.clock.sleep(5)
    for number in range(20):
        await bench.create(f"new-{number}", number / 10, url=f"https://new-{number}.example")
    rounds = HANGING_ENDPOINTS / (SLOTS / 2)
    await bench.clock.sleep((rounds + 1) * TIMEOUT_SECONDS)
    assert [await bench.status(f"new-{number}") for number in range(20)] == (
        [TimerStatus.COMPLETED] * 20
    )


@on_virtual_time
async def test_new_endpoints_go_before_those_that_hung() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=100)
    await bench.start()
    await hang(bench, SLOTS // 2)
    await bench.clock.sleep(TIMEOUT_SECONDS + 2)
    await hang(bench, SLOTS // 2, prefix="hanging")
    for number in range(50):
        await bench.create(f"new-{number}", number / 10, url=f"https://new-{number}.example")
    await bench.clock.sleep(10)
    latenesses_ms = [bench.latenesses_ms(f"new-{number}") for number in range(50)]
    assert latenesses_ms == [[0]] * 50


@on_virtual_time
async def test_a_burst_over_many_quick_endpoints_needs_no_hand_backs() -> None:
    """At its start a node knows none of them."""
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=100)
    await bench.start()
    urls = [f"https://quick-{number}.example" for number in range(1_000)]
    for number, url in enumerate(urls):
        bench.destination.script(url, Succeed(0.05))
        await bench.create_many(f"t-{number}", [bench.at(1)], url=url)
    await bench.clock.sleep(1.6)
    assert await bench.count(TimerStatus.COMPLETED) == 1_000
    assert sum(came for _, _, _, came in bench.store.claims) == 1_000
    assert bench.engine.endpoints() == []


async def most_at_once(bench: EngineBench, url: str) -> int:
    """Attempts under way when many timers of the endpoint come due now."""
    await bench.create_many("many", [bench.at(0)] * SLOTS, url=url)
    await bench.clock.sleep(1)
    return max(attempt.at_once for attempt in bench.destination.attempts_of(url))


@pytest.mark.parametrize("passes", ["the process", "the wall clock", "nothing"])
@on_virtual_time
async def test_a_quick_failure_is_not_taken_for_hanging_because_of_a_pause(passes: str) -> None:
    """An endpoint that nobody knows may use half of the share of its kind, a half of all."""
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=SLOTS)
    bench.destination.script(SLOW, Fail(0.2), Succeed(5))
    await bench.start()
    await bench.create("first", 0, url=SLOW)
    await bench.clock.sleep(0.1)
    if passes == "the process":
        bench.suspend(8)
    elif passes == "the wall clock":
        bench.clock.jump_wall(8)
    await bench.clock.sleep(0.5)
    assert await most_at_once(bench, SLOW) == SLOTS / 4


@on_virtual_time
async def test_a_long_failure_counts_as_hanging_beside_a_pause() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=SLOTS)
    bench.destination.script(SLOW, Fail(10), Succeed(5))
    await bench.start()
    await bench.create("first", 0, url=SLOW)
    await bench.clock.sleep(0.5)
    bench.suspend(8)
    await bench.clock.sleep(3)
    assert await most_at_once(bench, SLOW) == SLOTS / 8


@on_virtual_time
async def test_an_endpoint_keeps_its_standing_over_a_pause_during_its_attempts() -> None:
    bench = EngineBench(concurrency=SLOTS, concurrency_per_endpoint=SLOTS)
    bench.destination.script(SLOW, Succeed(0.1), Succeed(20))
    await bench.start()
    await bench.create("first", 0, url=SLOW)
    await bench.create("under way", 0.2, url=SLOW)
    await bench.clock.sleep(1)
    bench.suspend(8)
    await bench.clock.sleep(1)
    assert await most_at_once(bench, SLOW) == SLOTS / 2
