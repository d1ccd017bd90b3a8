"""Each cause of lateness, injected into a real engine on virtual time, and named afterwards."""

import pytest

from duetime.domain.instants import plus_ms
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.service.explaining import Explanation
from duetime.testing import Fail, Hang, RunOut, Succeed, make_timer, on_virtual_time
from tests.simulation.lateness.explained import explained, milliseconds
from tests.unit.engine.cluster.cluster_bench import LEASE_SECONDS, ClusterBench
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench


async def explain(bench: EngineBench | ClusterBench, timer_id: str) -> Explanation:
    """As a node explains it: with the state of the engine, as far as it is unfinished."""
    timer, now = await bench.timer(timer_id), bench.clock.now()
    engine = bench.engine if isinstance(bench, EngineBench) else bench.nodes[-1].engine
    return explained(timer, now, engine.report_on(timer, now))


@on_virtual_time
async def test_a_timer_that_is_on_time_stores_no_waits() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(2)
    assert (await bench.timer("t")).attempts[0].waits == ()
    explanation = await explain(bench, "t")
    assert explanation.late == 0
    assert explanation.verdict.startswith("Fired on time: ")


@on_virtual_time
async def test_a_timer_that_waits_behind_others_of_its_endpoint() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(after_seconds=0.02))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 200, SLOW)
    await bench.clock.sleep(3)
    latest = max(bench.destination.attempts, key=lambda attempt: attempt.sent_at)
    explanation = await explain(bench, latest.claim.id)
    assert explanation.late == 60_000
    assert milliseconds(explanation) == {WaitCause.LANE: 60.0, WaitCause.ENDPOINT: 20.0}


@on_virtual_time
async def test_a_timer_that_waits_for_the_quota_of_its_namespace() -> None:
    bench = EngineBench()
    bench.namespaces.limit("default", 1)
    bench.destination.script(SLOW, Succeed(after_seconds=2.0))
    await bench.start()
    for n in range(5):
        await bench.create(f"t-{n}", 1, url=SLOW)
    await bench.clock.sleep(2)
    verdicts = [(await explain(bench, f"t-{n}")).verdict for n in range(5)]
    assert sum("has 1 of 1 callbacks under way" in verdict for verdict in verdicts) == 4
    await bench.clock.sleep(30)
    latest = max(bench.destination.attempts, key=lambda attempt: attempt.sent_at)
    sums = milliseconds(await explain(bench, latest.claim.id))
    assert sums.pop(WaitCause.ENDPOINT) == 2_000
    assert sums == {WaitCause.QUOTA: (latest.sent_at - latest.claim.execute_at) / 1_000}


@on_virtual_time
async def test_a_timer_that_waits_for_a_breaker() -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Fail(after_seconds=0.1, error="HTTP 503"))
    await bench.start()
    await bench.create_many("early", [bench.at(n / 4) for n in range(4, 40)], HANGING)
    await bench.clock.sleep(10)
    bench.destination.script(HANGING, Hang())
    await bench.create_many("probe", [bench.at(0.5)] * 10, HANGING)
    await bench.clock.sleep(1)
    await bench.create("t", 1, url=HANGING)
    await bench.clock.sleep(9)
    waiting = await explain(bench, "t")
    assert waiting.late == 8_000_000
    assert "the breaker of https://hanging.example is open since" in waiting.verdict
    assert "HTTP 503" in waiting.verdict
    assert milliseconds(waiting)[WaitCause.BREAKER] > 7_900
    bench.destination.script(HANGING, Succeed())
    await bench.clock.sleep(60)
    done = await explain(bench, "t")
    assert done.status is TimerStatus.COMPLETED
    assert done.late is not None
    assert milliseconds(done)[WaitCause.BREAKER] > 0.99 * done.late / 1_000
    assert "waiting for its endpoint's breaker to close" in done.verdict


@on_virtual_time
async def test_a_timer_whose_node_lacks_a_resource() -> None:
    bench = EngineBench()
    bench.destination.script("t", RunOut(), RunOut(), RunOut(), Succeed())
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(1.05)
    waiting = await explain(bench, "t")
    assert milliseconds(waiting) == {WaitCause.SHORTAGE: 50.0}
    await bench.clock.sleep(3)
    done = await explain(bench, "t")
    assert done.late is not None
    assert done.late > 100_000
    assert milliseconds(done) == {WaitCause.SHORTAGE: done.late / 1_000}


@on_virtual_time
async def test_a_timer_whose_store_is_away() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 2)
    bench.store.away = True
    await bench.clock.sleep(5)
    bench.store.away = False
    await bench.clock.sleep(5)
    done = await explain(bench, "t")
    assert done.late is not None
    assert 3_000_000 <= done.late < 5_000_000
    assert milliseconds(done) == {WaitCause.STORE: done.late / 1_000}


@on_virtual_time
async def test_a_timer_whose_claim_takes_the_store_long() -> None:
    bench = EngineBench()
    bench.store.claim_seconds = 0.5
    await bench.start()
    await bench.create("t", 2)
    await bench.clock.sleep(5)
    done = await explain(bench, "t")
    assert done.late is not None
    assert 100_000 < done.late <= 500_000
    assert milliseconds(done) == {WaitCause.STORE: done.late / 1_000}


@on_virtual_time
async def test_a_timer_that_is_due_while_no_node_runs() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 5)
    await bench.engine.stop(0)
    await bench.clock.sleep(65)
    stopped = await explain(bench, "t")
    assert stopped.verdict == "Due for 1m: no living node owns its shard."
    assert not stopped.is_live
    assert milliseconds(stopped) == {WaitCause.NODE_DOWN: 60_000}
    await bench.restart()
    await bench.clock.sleep(1)
    done = await explain(bench, "t")
    assert done.late == 60_000_000
    assert milliseconds(done) == {WaitCause.NODE_DOWN: 60_000}
    assert "while no node was running" in done.verdict


@on_virtual_time
async def test_a_timer_whose_process_is_killed_during_the_attempt() -> None:
    bench = EngineBench()
    bench.destination.script("t", Hang(), Succeed(after_seconds=0.25))
    await bench.start()
    await bench.create("t", 5)
    await bench.clock.sleep(10)
    under_way = await explain(bench, "t")
    assert "attempt 1 is under way to https://good.example, without an answer" in under_way.verdict
    await bench.restart()
    await bench.clock.sleep(1)
    done = await explain(bench, "t")
    assert milliseconds(done) == {WaitCause.NODE_DOWN: 5_000, WaitCause.ENDPOINT: 250}
    assert [attempt.sent_at is None for attempt in done.attempts] == [True, False]


@on_virtual_time
async def test_the_record_of_a_process_that_ended_is_not_guessed() -> None:
    bench = EngineBench()
    bench.destination.script("t", RunOut())
    await bench.start()
    await bench.create("t", 5)
    await bench.clock.sleep(30)
    await bench.engine.stop(0)
    await bench.clock.sleep(30)
    bench.destination.script("t", Succeed())
    await bench.restart()
    await bench.clock.sleep(3)
    done = await explain(bench, "t")
    sums = milliseconds(done)
    assert done.late is not None
    assert set(sums) == {WaitCause.NOT_RECORDED, WaitCause.NODE_DOWN}
    assert sum(sums.values()) * 1_000 == done.late
    assert 25_000 < sums[WaitCause.NOT_RECORDED] < 28_000


@on_virtual_time
async def test_a_clock_that_is_set_forward_past_the_instant() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 30)
    await bench.clock.sleep(6)
    bench.clock.jump_wall(3_600)
    await bench.clock.sleep(7)
    sums = milliseconds(await explain(bench, "t"))
    assert sums[WaitCause.CLOCK] == 3_600_000 - 24_000
    assert sums.get(WaitCause.CLAIM, 0) <= 1_000


@on_virtual_time
async def test_a_process_that_stands_still() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(0.97)
    bench.suspend(5)
    await bench.clock.sleep(1)
    done = await explain(bench, "t")
    assert done.late == 4_970_000
    assert milliseconds(done) == {WaitCause.ENGINE: 4_970.0}


@on_virtual_time
async def test_a_timer_that_is_created_after_its_instant() -> None:
    bench = EngineBench()
    await bench.start()
    now = bench.clock.now()
    timer = make_timer("t", execute_at=plus_ms(now, -90_000), created_at=now)
    await bench.store.create([CreateRequest(timer, OnExisting.KEEP)])
    bench.engine.announce(timer.shard, timer.due_at)
    await bench.clock.sleep(1)
    done = await explain(bench, "t")
    assert milliseconds(done) == {WaitCause.ACCEPTED_LATE: 90_000}
    assert done.attempts[0].late == 0
    assert done.verdict.startswith("Fired 1m 30s late: 1m 30s of it before it was created")


@on_virtual_time
async def test_attempts_that_fail_and_the_policy_between_them() -> None:
    bench = EngineBench()
    failure = Fail(after_seconds=0.5, error="HTTP 503: no")
    bench.destination.script("t", failure, failure, Succeed(after_seconds=0.1))
    await bench.start()
    policy = RetryPolicy(max_retries=3, initial_interval_ms=10_000, backoff_multiplier=1.0)
    await bench.create("t", 1, retry_policy=policy)
    await bench.clock.sleep(2)
    waiting = await explain(bench, "t")
    assert waiting.verdict.startswith("Waiting for its retry, planned for ")
    assert "attempt 1 ended with: HTTP 503: no" in waiting.verdict
    await bench.clock.sleep(60)
    done = await explain(bench, "t")
    sums = milliseconds(done)
    assert sums.keys() == {WaitCause.RETRY_POLICY, WaitCause.ENDPOINT}
    assert sums[WaitCause.ENDPOINT] == 1_100
    assert [(period.cause.value, period.attempt) for period in done.periods] == [
        ("endpoint", 1),
        ("retry_policy", 1),
        ("endpoint", 2),
        ("retry_policy", 2),
        ("endpoint", 3),
    ]
    assert "between attempts, by its retry policy" in done.verdict


@on_virtual_time
async def test_a_retry_that_waits_because_of_a_shortage() -> None:
    """Its planned instant is in no member of the timer any more, once it was handed back."""
    bench = EngineBench()
    bench.destination.script("t", Fail(), RunOut(), RunOut(), Succeed())
    await bench.start()
    policy = RetryPolicy(max_retries=3, initial_interval_ms=10_000, backoff_multiplier=1.0)
    await bench.create("t", 1, retry_policy=policy)
    await bench.clock.sleep(40)
    done = await explain(bench, "t")
    timer = await bench.timer("t")
    (shortage,) = timer.attempts[1].waits
    assert shortage.cause == WaitCause.SHORTAGE
    sums = milliseconds(done)
    assert sums[WaitCause.SHORTAGE] * 1_000 == shortage.microseconds > 100_000
    assert sums.keys() == {WaitCause.SHORTAGE, WaitCause.RETRY_POLICY}


@on_virtual_time
async def test_a_node_that_dies_and_another_that_takes_over() -> None:
    bench = ClusterBench()
    one, two = await bench.start_spread("one", "two")
    await bench.run(3.3)
    (timer_id,) = await bench.ids_of(one, 1)
    timer = await bench.create(timer_id, 2, through=one)
    report = two.engine.report_on(timer, bench.clock.now())
    assert (report.owns_shard, report.owner) == (False, "one")
    one.kill()
    await bench.run(4)
    late = explained(timer, bench.clock.now(), two.engine.report_on(timer, bench.clock.now()))
    assert "its shard belongs to node one" in late.verdict
    assert milliseconds(late) == {WaitCause.NOT_RECORDED: 2_000}
    await bench.run(LEASE_SECONDS)
    done = await explain(bench, timer_id)
    assert done.late is not None
    assert done.late > 1_000_000
    assert milliseconds(done) == {WaitCause.FAILOVER: done.late / 1_000}
    assert "until another node took over" in done.verdict


@on_virtual_time
async def test_a_cluster_that_was_down() -> None:
    bench = ClusterBench()
    await bench.start_spread("one", "two")
    for node in bench.nodes:
        node.kill()
    await bench.create("t", 2)
    await bench.run(60)
    await bench.start("three")
    await bench.run(LEASE_SECONDS + 5)
    sums = milliseconds(await explain(bench, "t"))
    assert sums.keys() <= {WaitCause.NODE_DOWN, WaitCause.FAILOVER}


@pytest.mark.parametrize("seconds", [0.5, 2, 20])
@on_virtual_time
async def test_a_timer_that_waits_is_explained_up_to_the_moment(seconds: float) -> None:
    bench = EngineBench()
    bench.namespaces.limit("default", 1)
    bench.destination.script(SLOW, Hang())
    await bench.start()
    for n in range(3):
        await bench.create(f"t-{n}", 1, url=SLOW)
    await bench.clock.sleep(1 + seconds)
    explanations = [await explain(bench, f"t-{n}") for n in range(3)]
    assert [each.late for each in explanations] == [seconds * 1_000_000] * 3
    causes = [milliseconds(each) for each in explanations]
    assert causes.count({WaitCause.ENDPOINT: seconds * 1_000}) == 1
    assert causes.count({WaitCause.QUOTA: seconds * 1_000}) == 2


@on_virtual_time
async def test_an_attempt_under_way_is_told_apart_from_the_wait_before_it() -> None:
    bench = EngineBench()
    bench.namespaces.limit("default", 1)
    bench.destination.script(SLOW, Succeed(after_seconds=2.0))
    await bench.start()
    for n in range(2):
        await bench.create(f"t-{n}", 1, url=SLOW)
    await bench.clock.sleep(4)
    last = bench.destination.attempts[-1].claim.id
    explanation = await explain(bench, last)
    assert milliseconds(explanation) == {WaitCause.QUOTA: 2_000, WaitCause.ENDPOINT: 1_000}
    assert "without an answer for 1.00 s" in explanation.verdict


@on_virtual_time
async def test_a_timer_in_the_future_is_not_late() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 90, url=GOOD)
    await bench.clock.sleep(1)
    explanation = await explain(bench, "t")
    assert explanation.late is None
    assert explanation.periods == ()
    assert explanation.verdict.startswith("Not due yet: it fires in 1m 29s, at ")
