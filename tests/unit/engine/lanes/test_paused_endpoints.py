"""Nothing is sent to a paused endpoint, nothing is lost, and others do not notice."""

import pytest

from duetime.domain.instants import plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.engine.lanes import paused_endpoints
from duetime.ports.endpoints import EndpointPause
from duetime.testing import Fail, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, SLOW, EngineBench

PAUSED = "https://paused.example"


def pause(bench: EngineBench, *endpoints: str) -> None:
    now = bench.clock.now()
    bench.engine.set_pauses(
        {
            each: EndpointPause(endpoint=each, paused_at=now, paused_by="operator")
            for each in endpoints
        }
    )


def sent(bench: EngineBench, endpoint: str = PAUSED) -> int:
    return len(bench.destination.attempts_of(endpoint))


@on_virtual_time
async def test_timers_of_a_paused_endpoint_wait_and_go_out_at_once_when_it_is_resumed() -> None:
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED)
    await bench.create_many("t", [bench.at(1)] * 300, url=PAUSED)
    await bench.create_many("other", [bench.at(1)] * 300)
    await bench.clock.sleep(120)
    assert sent(bench) == 0
    assert sent(bench, GOOD) == 300
    assert await bench.count(TimerStatus.PENDING) == 300, "they can be canceled meanwhile"
    pause(bench)
    await bench.clock.sleep(0.2)
    assert await bench.count(TimerStatus.COMPLETED) == 600
    assert sent(bench) == 300, "once each"
    timer = await bench.timer("t-7")
    assert [attempt.number for attempt in timer.attempts] == [1]
    assert [wait.cause for wait in timer.attempts[0].waits] == [WaitCause.PAUSED]


@on_virtual_time
async def test_attempts_under_way_finish_and_waiting_claims_are_handed_back() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(after_seconds=5))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 100, url=SLOW)
    await bench.clock.sleep(1.01)
    under_way = sent(bench, SLOW)
    assert 0 < under_way < 100
    pause(bench, SLOW)
    await bench.clock.sleep(20)
    assert sent(bench, SLOW) == under_way
    assert await bench.count(TimerStatus.COMPLETED) == under_way
    assert await bench.count(TimerStatus.PENDING) == 100 - under_way
    pause(bench)
    await bench.clock.sleep(20)
    assert await bench.count(TimerStatus.COMPLETED) == 100


@on_virtual_time
async def test_a_retry_waits_and_none_is_used_up() -> None:
    bench = EngineBench()
    bench.destination.script(PAUSED, Fail(), Succeed())
    await bench.start()
    policy = RetryPolicy(max_retries=1, initial_interval_ms=5_000)
    await bench.create("t", 1, url=PAUSED, retry_policy=policy)
    await bench.clock.sleep(2)
    assert sent(bench) == 1
    pause(bench, PAUSED)
    await bench.clock.sleep(600)
    timer = await bench.timer("t")
    assert (timer.failures, len(timer.attempts)) == (1, 1)
    pause(bench)
    await bench.clock.sleep(0.2)
    timer = await bench.timer("t")
    assert timer.status is TimerStatus.COMPLETED
    assert [attempt.number for attempt in timer.attempts] == [1, 2]
    assert timer.attempts[1].waits[-1].cause == WaitCause.PAUSED


@on_virtual_time
async def test_a_timer_can_be_canceled_or_moved_while_it_waits() -> None:
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED)
    for name in ("canceled", "moved", "kept"):
        await bench.create(name, 1, url=PAUSED)
    await bench.clock.sleep(30)
    key = TimerKey("default", "canceled")
    canceled = await bench.store.cancel_if_pending(key, bench.clock.now())
    assert canceled is not None
    assert canceled.applied
    later = Change(updated_at=bench.clock.now(), delivery_id="later", execute_at=bench.at(60))
    await bench.store.change_if_pending(TimerKey("default", "moved"), later)
    pause(bench)
    await bench.clock.sleep(0.2)
    ids = [attempt.claim.id for attempt in bench.destination.attempts_of(PAUSED)]
    assert ids == ["kept"]
    await bench.clock.sleep(61)
    assert sent(bench) == 2
    assert (await bench.timer("canceled")).status is TimerStatus.CANCELED


@on_virtual_time
async def test_a_waiting_timer_is_pending_all_the_time() -> None:
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED)
    await bench.create("t", 1, url=PAUSED)
    statuses = set()
    for _ in range(2_000):
        # Never at the instants at which claims return.
        await bench.clock.sleep(0.0107)
        statuses.add(await bench.status("t"))
    assert statuses == {TimerStatus.PENDING}
    assert sent(bench) == 0


@on_virtual_time
async def test_a_pause_holds_in_a_new_process_and_its_timers_return_by_themselves() -> None:
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED)
    await bench.create("t", 1, url=PAUSED)
    await bench.clock.sleep(60)
    await bench.engine.stop(1)
    bench.engine = bench.new_engine()
    pause(bench, PAUSED)
    await bench.engine.start()
    await bench.clock.sleep(1)
    assert sent(bench) == 0
    pause(bench)
    await bench.clock.sleep(paused_endpoints.LONGEST_DEFERRAL_MS / 1_000 + 1)
    assert sent(bench) == 1


@on_virtual_time
async def test_a_large_backlog_costs_a_bounded_number_of_claims_and_little_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paused_endpoints, "MAX_NOTED", 500)
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED)
    await bench.create_many("t", [bench.at(1)] * 3_000, url=PAUSED)
    await bench.clock.sleep(60)
    before = sum(claimed for *_, claimed in bench.store.claims)
    await bench.clock.sleep(60)
    assert sum(claimed for *_, claimed in bench.store.claims) - before <= 6 * 3_000 + 1
    (status,) = bench.engine.endpoints()
    assert 2_900 <= status.waiting <= 3_000
    assert status.in_flight == 0
    await bench.create("on time", 1)
    await bench.clock.sleep(1.1)
    assert bench.destination.attempts_of(GOOD)[0].sent_at <= plus_ms(bench.clock.now(), -90)
    pause(bench)
    await bench.clock.sleep(11)
    assert sent(bench) == 3_000


@on_virtual_time
async def test_each_paused_endpoint_counts_its_own_timers_and_tells_the_other_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paused_endpoints, "MAX_NOTED", 100)
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED, SLOW)
    await bench.create_many("first", [bench.at(1)] * 100, url=PAUSED)
    await bench.clock.sleep(2)
    await bench.create_many("second", [bench.at(1)] * 50, url=SLOW)
    await bench.clock.sleep(9.0107)
    waiting = {each.endpoint: each.waiting for each in bench.engine.endpoints()}
    assert waiting == {PAUSED: 100, SLOW: 50}
    assert bench.engine.facts().put_off == waiting
    pause(bench)
    assert bench.engine.facts().put_off == {}


@on_virtual_time
async def test_a_pause_while_the_store_is_away_loses_nothing() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 50, url=PAUSED)
    pause(bench, PAUSED)
    await bench.clock.sleep(5)
    bench.store.away = True
    pause(bench)
    await bench.clock.sleep(5)
    assert sent(bench) == 0
    bench.store.away = False
    await bench.clock.sleep(15)
    assert sent(bench) == 50


@on_virtual_time
async def test_paused_endpoints_are_listed_first_with_what_waits() -> None:
    bench = EngineBench()
    await bench.start()
    pause(bench, PAUSED, "https://never-called.example")
    await bench.create_many("t", [bench.at(1)] * 3, url=PAUSED)
    bench.destination.script(SLOW, Succeed(after_seconds=60))
    await bench.create("slow", 1, url=SLOW)
    await bench.clock.sleep(5.0107)
    shown = [(each.endpoint, each.waiting, each.pause) for each in bench.engine.endpoints()]
    assert [(endpoint, waiting) for endpoint, waiting, _ in shown] == [
        ("https://never-called.example", 0),
        (PAUSED, 3),
        (SLOW, 0),
    ]
    assert shown[1][2] is not None
    assert shown[1][2].paused_by == "operator"
    assert shown[2][2] is None
    canceled = await bench.store.cancel_if_pending(TimerKey("default", "t-1"), bench.clock.now())
    assert canceled is not None
    assert canceled.applied
    await bench.clock.sleep(60)
    assert bench.engine.endpoints()[1].waiting == 2
