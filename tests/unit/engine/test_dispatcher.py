"""Each claim at its instant; no endpoint at the expense of another."""

import asyncio

from duetime.domain.errors import InvalidInput
from duetime.domain.outcome import Outcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.destination import MaySend
from duetime.testing import (
    Fail,
    Hang,
    RecordingDestination,
    Reschedule,
    Succeed,
    on_virtual_time,
    run_on_virtual_time,
)
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench


class SerialServer(RecordingDestination):
    """Answers one request after the other at SLOW, a hundred a second."""

    free_at_seconds = 0.0

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        if self.endpoint_of(claim) == SLOW:
            now = self._clock.monotonic()
            self.free_at_seconds = max(self.free_at_seconds, now) + 0.01
            self.script(claim.id, Succeed(self.free_at_seconds - now))
        return await super().deliver(claim, may_send)


class BrokenDestination(RecordingDestination):
    def endpoint_of(self, claim: Claim) -> str:
        if claim.id == "no endpoint":
            raise InvalidInput("callback.url", "was valid in an earlier release")
        return super().endpoint_of(claim)

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        if claim.id == "raises":
            raise ValueError("a bug")
        if claim.id == "cancels itself":
            raise asyncio.CancelledError
        return await super().deliver(claim, may_send)


def test_nothing_is_sent_early_even_if_the_loops_timers_fire_early() -> None:
    async def scenario() -> None:
        bench = EngineBench()
        await bench.start()
        await bench.create_many("t", [bench.at(1 + number * 0.00037) for number in range(1_000)])
        await bench.clock.sleep(5)
        latenesses = bench.latenesses_ms(GOOD)
        assert len(latenesses) == 1_000
        assert min(latenesses) >= 0
        assert max(latenesses) <= 1

    run_on_virtual_time(scenario(), fires_early_seconds=0.0004)


@on_virtual_time
async def test_nothing_is_sent_early_when_the_wall_clock_is_set_back_while_it_waits() -> None:
    bench = EngineBench(concurrency_per_endpoint=1)
    bench.destination.script(SLOW, Succeed(0.1))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 3, url=SLOW)
    await bench.clock.sleep(1.05)
    bench.clock.jump_wall(-60)
    await bench.clock.sleep(50)
    assert len(bench.destination.attempts) == 1
    await bench.clock.sleep(30)
    assert await bench.count(TimerStatus.COMPLETED) == 3
    assert min(bench.latenesses_ms(SLOW)) >= 0


@on_virtual_time
async def test_a_retry_after_the_wall_clock_was_set_back_is_not_before_execute_at() -> None:
    bench = EngineBench()
    bench.destination.script("t", Fail(after_seconds=1), Succeed())
    await bench.start()
    timer = await bench.create("t", 1, retry_policy=RetryPolicy(initial_interval_ms=1_000))
    await bench.clock.sleep(1.5)
    bench.clock.jump_wall(-600)
    await bench.clock.sleep(700)
    assert await bench.status("t") is TimerStatus.COMPLETED
    assert bench.destination.attempts[1].sent_at >= timer.execute_at


@on_virtual_time
async def test_a_new_hanging_endpoint_takes_a_quarter_of_the_slots_and_delays_no_other() -> None:
    bench = EngineBench(concurrency=200, concurrency_per_endpoint=200)
    bench.destination.script(HANGING, Hang())
    bench.destination.script(GOOD, Succeed(0.02))
    await bench.start()
    await bench.create_many("h", [bench.at(1)] * 3_000, url=HANGING)
    await bench.create_many("g", [bench.at(0.5 + number / 100) for number in range(2_000)])
    await bench.clock.sleep(25)
    assert bench.destination.most_at_once(HANGING) == 50
    latenesses = bench.latenesses_ms(GOOD)
    assert len(latenesses) == 2_000
    # Until the lane is known to stand still, claims for it take all the room: once.
    assert sum(lateness > 5 for lateness in latenesses) <= 10
    assert max(latenesses) <= 100


@on_virtual_time
async def test_an_endpoint_that_answers_slowly_delays_no_other_for_long() -> None:
    bench = EngineBench()
    bench.destination = SerialServer(bench.clock)
    bench.engine = bench.new_engine()
    await bench.start()
    await bench.create_many("s", [bench.at(1)] * 5_000, url=SLOW)
    await bench.create_many("g", [bench.at(0.5 + number / 10) for number in range(300)])
    await bench.clock.sleep(60)
    latenesses = bench.latenesses_ms(GOOD)
    assert len(latenesses) == 300
    assert max(latenesses) <= 300
    assert sum(lateness > 5 for lateness in latenesses) <= 4
    assert await bench.count(TimerStatus.COMPLETED) == 5_300


@on_virtual_time
async def test_timers_of_a_hanging_endpoint_are_handed_back_and_can_be_canceled() -> None:
    bench = EngineBench(concurrency_per_endpoint=10)
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("h", [bench.at(1)] * 50, url=HANGING)
    await bench.clock.sleep(1.4)
    assert await bench.count(TimerStatus.EXECUTING) == 10
    assert await bench.count(TimerStatus.PENDING) == 40
    deferred = [
        timer for timer in [await bench.timer(f"h-{n}") for n in range(50)] if not timer.attempt
    ]
    assert len(deferred) == 40
    stayed = [timer.due_at - timer.execute_at for timer in deferred]
    assert min(stayed) >= 500_000
    assert max(stayed) <= 600_000
    result = await bench.store.cancel_if_pending(deferred[0].key, bench.clock.now())
    assert result is not None
    assert result.applied
    await bench.clock.sleep(600)
    assert await bench.count(TimerStatus.FAILED) == 49
    assert all(attempt.claim.attempt == 1 for attempt in bench.destination.attempts)


@on_virtual_time
async def test_a_slow_endpoint_gets_more_attempts_at_once() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(2))
    await bench.start()
    await bench.create_many("s", [bench.at(1)] * 1_000, url=SLOW)
    await bench.clock.sleep(1.2)
    assert bench.destination.running(SLOW) == 1_000


@on_virtual_time
async def test_a_rescheduled_timer_fires_again_at_the_new_instant_as_a_new_firing() -> None:
    bench = EngineBench(poll_seconds=3_600)
    bench.destination.script("t", Reschedule(in_seconds=30), Succeed())
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(60)
    first, second = bench.destination.attempts
    assert second.sent_at - first.sent_at == 30_000_000
    assert (first.claim.attempt, second.claim.attempt) == (1, 1)
    assert first.claim.delivery_id != second.claim.delivery_id


@on_virtual_time
async def test_a_broken_destination_fails_its_own_timers_only() -> None:
    bench = EngineBench()
    bench.destination = BrokenDestination(bench.clock)
    bench.engine = bench.new_engine()
    await bench.start()
    for timer_id in ("no endpoint", "raises", "cancels itself", "fine"):
        await bench.create(timer_id, 1)
    await bench.clock.sleep(5)
    statuses = {
        timer_id: (await bench.timer(timer_id)).last_error
        for timer_id in ("no endpoint", "raises", "cancels itself", "fine")
    }
    assert statuses == {
        "no endpoint": "internal error: callback.url was valid in an earlier release",
        "raises": "internal error: a bug",
        "cancels itself": "internal error: the attempt was cancelled",
        "fine": None,
    }
    assert bench.engine.in_flight == 0


@on_virtual_time
async def test_more_endpoints_than_slots_all_get_their_turn() -> None:
    bench = EngineBench(concurrency=8, concurrency_per_endpoint=8)
    urls = [f"https://endpoint-{number}.example" for number in range(12)]
    for url in urls:
        bench.destination.script(url, Succeed(0.1))
    await bench.start()
    for number, url in enumerate(urls):
        await bench.create_many(f"t{number}", [bench.at(1)] * 4, url=url)
    await bench.clock.sleep(4)
    assert await bench.count(TimerStatus.COMPLETED) == 48


class SilentOnce(RecordingDestination):
    """Breaks its contract at the first attempt: there is no outcome at all."""

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        outcome = await super().deliver(claim, may_send)
        return outcome if len(self.attempts) > 1 else None  # type: ignore[return-value]


@on_virtual_time
async def test_a_claim_whose_attempt_could_not_be_settled_is_found_again() -> None:
    bench = EngineBench()
    bench.destination = SilentOnce(bench.clock)
    bench.engine = bench.new_engine()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(1 + 6)
    assert await bench.status("t") is TimerStatus.COMPLETED
    assert len(bench.destination.attempts) == 2
