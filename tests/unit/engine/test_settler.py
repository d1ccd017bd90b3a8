"""Outcomes reach the store, whatever the store does."""

from collections.abc import Sequence

from structlog.typing import EventDict

from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.testing import Fail, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, EngineBench, WatchedStore

ONE_RETRY = RetryPolicy(max_retries=1, initial_interval_ms=2_000)


class PickyStore(WatchedStore):
    """Cannot write some settlements, and fails the whole batch because of them."""

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        if any("poison" in (settlement.last_error or "") for settlement in settlements):
            raise UnicodeError("cannot be written")
        return await super().settle(settlements)


class SilentStore(WatchedStore):
    """Writes the first batch but does not live to say so."""

    def __init__(self, bench: EngineBench) -> None:
        super().__init__(bench.clock)
        self.silent = True

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        applied = await super().settle(settlements)
        if self.silent:
            self.silent, self.away = False, True
            try:
                await self._take(0.0)
            finally:
                self.away = False
        return applied


@on_virtual_time
async def test_outcomes_wait_for_a_store_that_is_away() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 300)
    await bench.clock.sleep(0.99)
    bench.store.away = True
    await bench.clock.sleep(3_600)
    assert len(bench.destination.attempts) == 300
    assert await bench.count(TimerStatus.EXECUTING) == 300
    bench.store.away = False
    await bench.clock.sleep(5)
    assert await bench.count(TimerStatus.COMPLETED) == 300
    assert len(bench.destination.attempts) == 300


@on_virtual_time
async def test_outcomes_that_gather_during_a_write_are_written_in_one_batch() -> None:
    bench = EngineBench()
    bench.store.settle_seconds = 0.1
    await bench.start()
    await bench.create_many("t", [bench.at(1 + number / 1_000) for number in range(100)])
    await bench.clock.sleep(1.3)
    # One for the first timer, one for all that came during its write.
    assert await bench.count(TimerStatus.COMPLETED) == 100


@on_virtual_time
async def test_a_retry_is_sent_at_its_instant_without_waiting_for_a_poll() -> None:
    bench = EngineBench(poll_seconds=3_600)
    bench.destination.script("t", Fail())
    await bench.start()
    await bench.create("t", 1, retry_policy=ONE_RETRY)
    await bench.clock.sleep(10)
    assert bench.latenesses_ms("t") == [0, 0]
    assert await bench.status("t") is TimerStatus.FAILED


@on_virtual_time
async def test_a_retry_is_on_time_even_if_the_answer_to_its_write_got_lost() -> None:
    bench = EngineBench(poll_seconds=3_600)
    bench.store = SilentStore(bench)
    bench.engine = bench.new_engine()
    bench.destination.script("t", Fail())
    await bench.start()
    await bench.create("t", 1, retry_policy=ONE_RETRY)
    await bench.clock.sleep(10)
    assert bench.latenesses_ms("t") == [0, 0]


@on_virtual_time
async def test_an_outcome_that_cannot_be_written_does_not_hold_up_the_others() -> None:
    bench = EngineBench()
    bench.store = PickyStore(bench.clock)
    bench.engine = bench.new_engine()
    bench.destination.script("t-17", Fail(error="poison"))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 500)
    await bench.clock.sleep(20)
    assert await bench.count(TimerStatus.COMPLETED) == 499
    assert await bench.status("t-17") is TimerStatus.EXECUTING
    await bench.create("later", 1)
    await bench.clock.sleep(1.1)
    assert await bench.status("later") is TimerStatus.COMPLETED
    await bench.engine.stop(1)


def test_a_settlement_of_a_lost_claim_changes_nothing_and_is_logged(logs: list[EventDict]) -> None:
    @on_virtual_time
    async def scenario() -> None:
        bench = EngineBench()
        bench.destination.script(GOOD, Fail(after_seconds=5))
        await bench.start()
        timer = await bench.create("t", 1)
        await bench.clock.sleep(3)
        (state, *_) = [shard for shard in await bench.store.shards() if shard.shard == timer.shard]
        await bench.store.claim_shards({state.shard: state.epoch}, owner="another")
        await bench.clock.sleep(10)
        assert await bench.status("t") is TimerStatus.EXECUTING

    scenario()
    assert [entry["id"] for entry in logs if entry["event"] == "timer.settlement_refused"] == ["t"]
