"""Finished timers are forgotten after their retention, in small bites."""

import pytest

from duetime.domain.timer import TimerStatus
from duetime.testing import on_virtual_time
from tests.unit.engine.engine_bench import EngineBench


@on_virtual_time
async def test_finished_timers_go_in_batches_with_pauses_in_between() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 1_200)
    await bench.clock.sleep(30)
    assert await bench.count(TimerStatus.COMPLETED) == 1_200
    await bench.clock.sleep(700)
    assert await bench.count(TimerStatus.COMPLETED) == 0
    bites = [(at, count) for at, count in bench.store.pruned if count]
    assert [count for _, count in bites] == [500, 500, 200]
    assert bites[1][0] - bites[0][0] == pytest.approx(0.05)
    assert 601 <= bites[0][0] <= 601 + 61


@on_virtual_time
async def test_live_timers_and_young_finished_ones_stay() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    await bench.create("live", 5_000)
    await bench.create("old", 10)
    await bench.create("young", 1_000)
    await bench.clock.sleep(1_500)
    assert await bench.status("live") is TimerStatus.PENDING
    assert await bench.status("young") is TimerStatus.COMPLETED
    assert await bench.count(TimerStatus.COMPLETED) == 1


@on_virtual_time
async def test_without_a_retention_everything_is_kept() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(3 * 3_600)
    assert await bench.status("t") is TimerStatus.COMPLETED
    assert not bench.store.pruned


@on_virtual_time
async def test_pruning_carries_on_when_the_store_comes_back() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(100)
    bench.store.away = True
    await bench.clock.sleep(1_000)
    bench.store.away = False
    await bench.clock.sleep(70)
    assert await bench.count(TimerStatus.COMPLETED) == 0
