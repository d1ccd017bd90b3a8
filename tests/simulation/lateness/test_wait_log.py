"""The record of waits: bounded, and silent where the instants tell as much."""

from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import Epoch
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import claim_of, claimed, hand_back, settled
from duetime.engine import wait_log
from duetime.engine.wait_log import WaitLog
from duetime.testing import Hang, Succeed, make_timer, on_virtual_time
from duetime.testing.virtual_clock import START_AT
from tests.simulation.lateness.explained import explained, milliseconds
from tests.unit.engine.cluster.cluster_bench import ClusterBench
from tests.unit.engine.engine_bench import SLOW, EngineBench


def at(ms: float) -> Instant:
    return plus_ms(START_AT, ms)


def claim_at(ms: float, timer_id: str = "t") -> Claim:
    timer = make_timer(timer_id, execute_at=START_AT, created_at=at(-1_000))
    return claim_of(claimed(timer, epoch=Epoch(1), now=at(ms)))


def claim_after_hand_back(back_to_ms: float, claimed_ms: float, timer_id: str = "t") -> Claim:
    timer = make_timer(timer_id, execute_at=START_AT, created_at=at(-1_000))
    first = claimed(timer, epoch=Epoch(1), now=START_AT)
    back = hand_back(claim_of(first), due_at=at(back_to_ms), now=START_AT)
    return claim_of(claimed(settled(first, back), epoch=Epoch(1), now=at(claimed_ms)))


def test_nothing_is_stored_where_the_instants_tell_as_much() -> None:
    assert WaitLog().take_waits(claim_at(300), at(350), 350_000, None) == ()


def test_a_claim_that_was_handed_back_remembers_why_until_it_is_sent() -> None:
    log = WaitLog()
    log.handed_back(claim_at(-50), WaitCause.LANE, now=at(250), due_at=at(500))
    again = claim_after_hand_back(500, 450)
    log.handed_back(again, WaitCause.BREAKER, now=at(700), due_at=at(1_200))
    last = claim_after_hand_back(1_200, 1_250)
    waits = log.take_waits(last, at(1_400), 1_400_000, (WaitCause.LANE, 0.1))
    assert waits == (
        ("lane", 500_000),
        ("breaker", 700_000),
        ("claim", 50_000),
        ("engine", 50_000),
        ("lane", 100_000),
    )
    assert not log.remembered


def test_the_oldest_record_is_forgotten_and_shown_as_such() -> None:
    log = WaitLog()
    for n in range(wait_log.MAX_REMEMBERED + 1):
        claim = claim_at(-50, f"t-{n}")
        log.handed_back(claim, WaitCause.BREAKER, now=at(10), due_at=at(250))
    assert len(log.remembered) == wait_log.MAX_REMEMBERED
    forgotten = claim_after_hand_back(250, 200, "t-0")
    assert log.take_waits(forgotten, at(250), 250_000, None) == (("not_recorded", 250_000),)
    kept = claim_after_hand_back(250, 200, "t-1")
    assert log.take_waits(kept, at(250), 250_000, None) == (("breaker", 250_000),)


def test_intervals_are_bounded() -> None:
    log = WaitLog()
    for n in range(1_000):
        log.asks_for_claims(at(1_000 * n), n)
        log.got_claims(at(1_000 * n + 500))
    waits = log.take_waits(claim_at(999_100), at(999_600), 999_600_000, None)
    assert sum(wait.microseconds for wait in waits) == 999_600_000
    assert {wait.cause for wait in waits} == {"claim", "store", "engine"}


@on_virtual_time
async def test_a_timer_that_finds_no_slot_of_its_standing() -> None:
    bench = EngineBench(concurrency=8, concurrency_per_endpoint=4)
    await bench.start()
    for n in range(6):
        bench.destination.script(f"https://hangs-{n}.example", Hang())
        await bench.create(f"h-{n}", 1, url=f"https://hangs-{n}.example", timeout_ms=10_000)
    bench.destination.script(SLOW, Succeed())
    await bench.create("t", 2, url=SLOW)
    await bench.clock.sleep(4)
    timer, now = await bench.timer("t"), bench.clock.now()
    waiting = explained(timer, now, bench.engine.report_on(timer, now))
    assert milliseconds(waiting) == {WaitCause.SLOTS: 2_000}
    await bench.clock.sleep(30)
    timer = await bench.timer("t")
    assert timer.status is TimerStatus.COMPLETED
    done = explained(timer, bench.clock.now())
    assert done.late is not None
    assert milliseconds(done) == {WaitCause.SLOTS: done.late / 1_000}


@on_virtual_time
async def test_a_shard_that_moves_in_order_is_a_hand_over() -> None:
    bench = ClusterBench()
    (one,) = await bench.start_spread("one")
    ids = [f"t-{n}" for n in range(64)]
    for timer_id in ids:
        await bench.create(timer_id, 5, through=one)
    await bench.run(4.6)
    await bench.start("two")
    await bench.run(5)
    causes = set()
    for timer_id in ids:
        timer = await bench.timer(timer_id)
        assert timer.status is TimerStatus.COMPLETED
        done = explained(timer, bench.clock.now())
        causes |= {cause for cause, ms in milliseconds(done).items() if ms >= 1}
    assert causes <= {WaitCause.HANDOVER, WaitCause.CLAIM}
