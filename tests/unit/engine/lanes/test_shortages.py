"""Attempts that cannot be made because this process lacks a resource."""

from structlog.testing import capture_logs

from duetime.domain.timer import TimerStatus
from duetime.testing import RunOut, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, SLOW, EngineBench


@on_virtual_time
async def test_a_timer_that_lacks_a_resource_waits_unchanged_and_fires_when_it_is_there() -> None:
    bench = EngineBench()
    bench.destination.script("t", RunOut(), RunOut(), RunOut(), Succeed())
    await bench.start()
    before = await bench.create("t", 1)
    await bench.clock.sleep(1.05)
    waiting = await bench.timer("t")
    assert waiting.status is TimerStatus.PENDING
    assert (waiting.attempt, waiting.failures, waiting.attempts) == (0, 0, ())
    assert (waiting.execute_at, waiting.last_error) == (before.execute_at, None)
    await bench.clock.sleep(2)
    (attempt,) = bench.destination.attempts
    assert (attempt.claim.attempt, attempt.claim.delivery_id) == (1, before.delivery_id)
    assert await bench.status("t") is TimerStatus.COMPLETED
    assert bench.engine.local_shortages == 3


@on_virtual_time
async def test_a_shortage_that_lasts_is_tried_rarely_blames_nobody_and_is_logged_once() -> None:
    bench = EngineBench()
    bench.destination.script(GOOD, RunOut("local ports"))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 100)
    with capture_logs() as logs:
        await bench.clock.sleep(5)
        tried_at_first = bench.engine.local_shortages
        await bench.clock.sleep(50)
    tried_per_second = (bench.engine.local_shortages - tried_at_first) / 50
    assert tried_per_second < 100
    assert not bench.engine.endpoints(), "no endpoint is remembered as one that failed"
    events = [entry["event"] for entry in logs]
    assert events == ["engine.short"]
    assert logs[0]["resource"] == "local ports"
    bench.destination.script(GOOD, Succeed())
    await bench.clock.sleep(4)
    assert await bench.count(TimerStatus.COMPLETED) == 100


@on_virtual_time
async def test_a_backlog_neither_circulates_without_pause_nor_stays_away_for_long() -> None:
    bench = EngineBench()
    bench.destination.script(GOOD, RunOut())
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 2_000)
    await bench.clock.sleep(10)
    before = bench.engine.local_shortages
    await bench.clock.sleep(5)
    assert (bench.engine.local_shortages - before) / 5 < 1_000
    bench.destination.script(GOOD, Succeed())
    await bench.clock.sleep(10)
    assert await bench.count(TimerStatus.COMPLETED) == 2_000


@on_virtual_time
async def test_a_shortage_at_one_endpoint_delays_no_other() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, RunOut())
    await bench.start()
    await bench.create_many("short", [bench.at(1)] * 500, url=SLOW)
    await bench.create_many("good", [bench.at(1 + number / 10) for number in range(20)])
    await bench.clock.sleep(4)
    assert len(bench.destination.attempts_of(GOOD)) == 20
    assert max(bench.latenesses_ms(GOOD)) <= 1


@on_virtual_time
async def test_the_first_shortage_after_a_while_is_logged_again_and_deferred_briefly() -> None:
    bench = EngineBench()
    bench.destination.script("first", *[RunOut()] * 8, Succeed())
    bench.destination.script("second", RunOut(), Succeed())
    await bench.start()
    with capture_logs() as logs:
        await bench.create("first", 1)
        await bench.clock.sleep(30)
        await bench.create("second", 1)
        await bench.clock.sleep(2)
    assert [entry["event"] for entry in logs] == ["engine.short"] * 2
    (attempt,) = bench.destination.attempts_of("second")
    assert (attempt.sent_at - attempt.claim.execute_at) / 1_000 <= 200


@on_virtual_time
async def test_a_shortage_that_lasts_hides_no_other_one_and_is_not_lateness() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, RunOut("encryption key k1"))
    bench.destination.script("second", RunOut("callback proxy (http://p:1: refused)"), Succeed())
    await bench.start()
    with capture_logs() as logs:
        await bench.create_many("sealed", [bench.at(1)] * 500, url=SLOW)
        await bench.clock.sleep(100)
        assert bench.engine.lateness_ms(99) is None
        await bench.create("second", 1)
        await bench.clock.sleep(2)
    (attempt,) = bench.destination.attempts_of("second")
    assert (attempt.sent_at - attempt.claim.execute_at) / 1_000 <= 200
    late_ms = bench.engine.lateness_ms(99)
    assert late_ms is not None
    assert late_ms <= 200
    resources = [entry["resource"] for entry in logs if entry["event"] == "engine.short"]
    assert resources == [
        *["encryption key k1"] * 2,
        "callback proxy (http://p:1: refused)",
    ]
    assert "CALLBACK_PROXY" in logs[-1]["advice"]


@on_virtual_time
async def test_many_resources_that_are_short_make_a_bounded_number_of_log_lines() -> None:
    bench = EngineBench()
    for number in range(100):
        bench.destination.script(f"t-{number}", RunOut(f"encryption key {number}"))
    await bench.start()
    with capture_logs() as logs:
        await bench.create_many("t", [bench.at(1)] * 100)
        await bench.clock.sleep(30)
    assert len([entry for entry in logs if entry["event"] == "engine.short"]) <= 10
