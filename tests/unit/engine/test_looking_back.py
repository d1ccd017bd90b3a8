"""Claims begin where the last one ended, so that timers claimed before are not in the way.

The memory store leaves out what is due before the start of a claim.
"""

import pytest

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.timer import TimerStatus
from duetime.engine.straggler_finder import LONGEST_REST_SECONDS
from duetime.ports.store import ClaimBatch, ClaimStart, Leases
from duetime.testing import Hang, LoopClock, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import ClusterBench
from tests.unit.engine.engine_bench import GOOD, HANGING, EngineBench, WatchedStore


class RecordingStore(WatchedStore):
    """Records where claims begin, and when and how long stragglers are searched for."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(clock)
        self.starts: list[ClaimStart | None] = []
        self.looks: list[float] = []
        self.finding_seconds = 0.0

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        self.starts.append(start)
        return await super().claim_due(
            leases, now=now, until_inclusive=until_inclusive, limit=limit, start=start
        )

    async def first_due(
        self, leases: Leases, *, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        self.looks.append(self._clock.monotonic())
        await self._take(self.finding_seconds)
        return await super().first_due(leases, before_exclusive=before_exclusive)


class RecordingBench(EngineBench):
    store: RecordingStore

    def new_store(self) -> WatchedStore:
        return RecordingStore(self.clock)


@on_virtual_time
async def test_each_claim_begins_where_the_last_one_ended() -> None:
    bench = RecordingBench(poll_seconds=5.0)
    await bench.start()
    for n in range(100):
        await bench.create(f"t{n}", 0.1 + n * 0.2)
    await bench.clock.sleep(21)
    assert await bench.count(TimerStatus.COMPLETED) == 100
    first, *others = bench.store.starts
    assert first is None
    untils = [until for _, until, _, _ in bench.store.claims]
    for until, start in zip(untils, others, strict=False):
        assert start is not None
        assert start.after_exclusive.due_at == until
        assert not start.from_inclusive
    assert 3 <= len(bench.store.looks) <= 5


@on_virtual_time
async def test_claims_of_one_instant_begin_after_the_last_timer_claimed() -> None:
    bench = RecordingBench(batch_size=10)
    await bench.create_many("t", [bench.at(0)] * 100)
    await bench.start()
    await bench.clock.sleep(1)
    assert await bench.count(TimerStatus.COMPLETED) == 100
    positions = [start.after_exclusive for start in bench.store.starts if start is not None]
    assert len({position.timer_uuid for position in positions[:9]}) == 9
    assert {position.due_at for position in positions[:9]} == {bench.at(-1)}


@on_virtual_time
async def test_a_timer_written_long_overdue_fires_at_once_if_announced() -> None:
    bench = RecordingBench(poll_seconds=3_600.0)
    await bench.start()
    await bench.clock.sleep(600)
    timer = await bench.create("late", -300)
    await bench.clock.sleep(0.1)
    assert await bench.status(timer.key.id) is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_timer_announced_during_a_claim_that_passes_it_by_fires_at_once() -> None:
    bench = RecordingBench(poll_seconds=3_600.0, horizon_ms=200)
    await bench.start()
    await bench.create("first", 10)
    await bench.clock.sleep(9.79)
    # The store answers the claim only after the other timer is written, due before its end.
    bench.store.claim_seconds = 0.1
    await bench.clock.sleep(0.05)
    await bench.create("second", 0.06)
    bench.store.claim_seconds = 0.0
    await bench.clock.sleep(1)
    assert bench.latenesses_ms("second") == [pytest.approx(0, abs=60)]


@on_virtual_time
async def test_a_timer_written_long_overdue_waits_for_a_search_if_not_announced() -> None:
    bench = RecordingBench(poll_seconds=5.0)
    await bench.start()
    await bench.clock.sleep(600)
    await bench.create("late", -300, announced=False)
    await bench.clock.sleep(5.1)
    assert await bench.status("late") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_timer_handed_back_is_claimed_again() -> None:
    bench = RecordingBench(poll_seconds=3_600.0, concurrency_per_endpoint=1)
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 50, url=HANGING)
    await bench.clock.sleep(600)
    assert await bench.count(TimerStatus.PENDING) < 50
    assert len(bench.destination.attempts) > 10


@on_virtual_time
async def test_long_searches_are_rare_and_never_more_than_a_minute_apart() -> None:
    bench = RecordingBench(poll_seconds=5.0)
    await bench.start()
    await bench.clock.sleep(600)
    bench.store.finding_seconds = 2.0
    await bench.clock.sleep(60)
    del bench.store.looks[:-1]
    await bench.clock.sleep(120)
    gaps = [b - a for a, b in zip(bench.store.looks, bench.store.looks[1:], strict=False)]
    assert gaps == [pytest.approx(40), pytest.approx(40), pytest.approx(40)][: len(gaps)]
    assert len(gaps) >= 2
    bench.store.finding_seconds = 100.0
    await bench.create("late", -300, announced=False)
    await bench.clock.sleep(LONGEST_REST_SECONDS + 200)
    assert await bench.status("late") is TimerStatus.COMPLETED


@on_virtual_time
async def test_claims_do_not_wait_for_a_search() -> None:
    bench = RecordingBench(poll_seconds=5.0)
    bench.store.finding_seconds = 1_000.0
    await bench.start()
    for n in range(100):
        await bench.create(f"t{n}", 1 + n)
    await bench.clock.sleep(110)
    assert bench.latenesses_ms(GOOD) == [0] * 100


@on_virtual_time
async def test_a_backlog_of_hours_is_claimed_to_its_end() -> None:
    bench = RecordingBench(poll_seconds=3_600.0, batch_size=4)
    for n in range(40):
        await bench.create(f"t{n}", -7_200 + n * 60, announced=False)
    await bench.start()
    await bench.clock.sleep(1)
    assert await bench.count(TimerStatus.COMPLETED) == 40


@on_virtual_time
async def test_a_clock_that_jumps_ahead_and_back_hides_nothing() -> None:
    bench = RecordingBench(poll_seconds=3_600.0)
    await bench.start()
    await bench.create("soon", 1_800, announced=True)
    await bench.clock.sleep(1)
    bench.clock.jump_wall(7_200)
    await bench.clock.sleep(2)
    assert await bench.status("soon") is TimerStatus.COMPLETED
    bench.clock.jump_wall(-7_200)
    await bench.clock.sleep(2)
    await bench.create("unannounced", 1_800, announced=False)
    await bench.create("announced", 1_801)
    await bench.clock.sleep(1_802)
    assert await bench.status("unannounced") is TimerStatus.COMPLETED
    assert await bench.status("announced") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_shard_that_is_taken_is_looked_at_from_its_first_timer() -> None:
    bench = ClusterBench(poll_seconds=3_600.0)
    _, two = await bench.start_spread("one", "two")
    ids = await bench.ids_of(two, 10)
    two.kill()
    for timer_id in ids:
        await bench.create(timer_id, -30)
    await bench.run(20)
    assert await bench.count(TimerStatus.COMPLETED) == 10
