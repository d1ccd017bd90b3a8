"""Thousands of timers of one slow or failing endpoint: no other is late, and none is lost."""

from collections import Counter

from duetime.domain.outcome import Outcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.destination import MaySend
from duetime.testing import Fail, Hang, RecordingDestination, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, HANGING, EngineBench


class FailsTwice(RecordingDestination):
    """Every timer's first two attempts fail."""

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        self.script(claim.id, Fail(0.002) if claim.attempt < 3 else Succeed(0.002))
        return await super().deliver(claim, may_send)


def percentile(values: list[float], percent: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


@on_virtual_time
async def test_ten_thousand_timers_of_a_hanging_endpoint_delay_no_others_due_with_them() -> None:
    bench = EngineBench()
    bench.store.claim_seconds = bench.store.settle_seconds = 0.005
    bench.destination.script(HANGING, Hang())
    bench.destination.script(GOOD, Succeed(0.01))
    await bench.start()
    await bench.create_many("h", [bench.at(1)] * 10_000, url=HANGING)
    await bench.create_many("g", [bench.at(1)] * 1_000, url=GOOD)
    await bench.clock.sleep(10)
    latenesses = [
        (attempt.sent_at - attempt.claim.execute_at) / 1_000
        for attempt in bench.destination.attempts_of(GOOD)
    ]
    assert len(latenesses) == 1_000
    assert percentile(latenesses, 99) < 1_000


@on_virtual_time
async def test_three_thousand_timers_of_a_slow_endpoint_come_within_three_seconds() -> None:
    """More timers than may wait."""
    bench = EngineBench()
    bench.store.claim_seconds = bench.store.settle_seconds = 0.005
    bench.destination.script(GOOD, Succeed(0.1))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 3_000, url=GOOD)
    await bench.clock.sleep(10)
    latenesses_ms = [attempt.lateness_ms for attempt in bench.destination.attempts]
    assert len(latenesses_ms) == await bench.count(TimerStatus.COMPLETED) == 3_000
    assert 0 <= min(latenesses_ms) <= max(latenesses_ms) < 3_000


@on_virtual_time
async def test_timers_whose_first_two_attempts_fail_all_complete_with_the_third() -> None:
    bench = EngineBench()
    bench.destination = FailsTwice(bench.clock)
    bench.engine = bench.new_engine()
    await bench.start()
    policy = RetryPolicy(initial_interval_ms=5_000)
    await bench.create_many("t", [bench.at(1)] * 10_000, retry_policy=policy)
    await bench.clock.sleep(60)
    assert await bench.count(TimerStatus.COMPLETED) == 10_000
    assert set(Counter(a.claim.id for a in bench.destination.attempts).values()) == {3}
    assert min(attempt.lateness_ms for attempt in bench.destination.attempts) >= 0


@on_virtual_time
async def test_the_backlog_of_a_dead_endpoint_leaves_most_claims_to_others() -> None:
    bench = EngineBench()
    bench.store.claim_seconds, bench.store.settle_seconds = 0.1, 0.02
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("h", [bench.at(1)] * 60_000, url=HANGING)
    # To claim the backlog once takes twelve seconds, whatever becomes of it.
    instants = [bench.at(15 + number / 10) for number in range(750)]
    await bench.create_many("g", instants, url=GOOD)
    await bench.clock.sleep(92)
    latenesses = [
        (attempt.sent_at - attempt.claim.execute_at) / 1_000
        for attempt in bench.destination.attempts_of(GOOD)
    ]
    assert len(latenesses) == 750
    assert percentile(latenesses, 99) < 1_000
    assert sum(count for *_, count in bench.store.claims) < 60_000 + 1_250 * 90
