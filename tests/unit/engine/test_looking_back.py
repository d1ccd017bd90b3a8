"""Claims begin near the present, so that timers claimed long ago are not in the way."""

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.store import ClaimBatch, Leases, PageQuery
from duetime.testing import LoopClock, on_virtual_time
from tests.unit.engine.engine_bench import EngineBench, WatchedStore


class LateStore(WatchedStore):
    """Leaves out timers due before `since_inclusive`, as a store may."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(clock)
        self.looks_at_all: list[float] = []
        self.looks = 0

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        since_inclusive: Instant | None = None,
    ) -> ClaimBatch:
        self.looks += 1
        if since_inclusive is None:
            self.looks_at_all.append(self._clock.monotonic())
        else:
            pages = await self.page(PageQuery(namespace="default", status=TimerStatus.PENDING))
            late = {timer.shard for timer in pages.timers if timer.due_at < since_inclusive}
            leases = {shard: epoch for shard, epoch in leases.items() if shard not in late}
        return await super().claim_due(
            leases, now=now, until_inclusive=until_inclusive, limit=limit
        )


class LateBench(EngineBench):
    store: LateStore

    def new_store(self) -> WatchedStore:
        return LateStore(self.clock)


@on_virtual_time
async def test_claims_begin_near_the_present_and_look_at_all_once_a_poll() -> None:
    bench = LateBench(poll_seconds=5.0)
    await bench.start()
    for n in range(100):
        await bench.create(f"t{n}", 0.1 + n * 0.2)
    await bench.clock.sleep(21)
    assert await bench.count(TimerStatus.COMPLETED) == 100
    assert bench.store.looks >= 100
    assert 4 <= len(bench.store.looks_at_all) <= 6


@on_virtual_time
async def test_a_timer_written_long_overdue_fires_at_once_if_announced() -> None:
    bench = LateBench(poll_seconds=3_600.0)
    await bench.start()
    await bench.clock.sleep(600)
    timer = await bench.create("late", -300)
    await bench.clock.sleep(0.1)
    assert await bench.status(timer.key.id) is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_timer_written_long_overdue_waits_for_a_poll_if_not_announced() -> None:
    bench = LateBench(poll_seconds=5.0)
    await bench.start()
    await bench.clock.sleep(600)
    await bench.create("late", -300, announced=False)
    await bench.clock.sleep(5.1)
    assert await bench.status("late") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_backlog_of_hours_is_claimed_to_its_end() -> None:
    bench = LateBench(poll_seconds=3_600.0, batch_size=4)
    for n in range(40):
        await bench.create(f"t{n}", -7_200 + n * 60, announced=False)
    await bench.start()
    await bench.clock.sleep(1)
    assert await bench.count(TimerStatus.COMPLETED) == 40


@on_virtual_time
async def test_a_clock_that_jumps_ahead_hides_nothing() -> None:
    bench = LateBench(poll_seconds=3_600.0)
    await bench.start()
    await bench.create("soon", 1_800, announced=True)
    await bench.clock.sleep(1)
    bench.clock.jump_wall(7_200)
    await bench.clock.sleep(2)
    assert await bench.status("soon") is TimerStatus.COMPLETED
