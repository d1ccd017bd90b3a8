"""Finished timers are forgotten after their retention, in small bites."""

import pytest

from duetime.domain.namespace import Namespace, NamespaceOptions
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
    bites = [(at, count) for at, _, count in bench.store.pruned if count]
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


def kept(name: str, seconds: int | None = None) -> Namespace:
    return Namespace(name, options=NamespaceOptions(retention_seconds=seconds))


@on_virtual_time
async def test_each_namespace_is_kept_for_as_long_as_it_wants() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    left: dict[str, list[int]] = {}
    for name, seconds in (("short", 60), ("service", None), ("long", 6_000), ("ever", 0)):
        await bench.store.add_namespace(kept(name, seconds))
        await bench.create_many("t", [bench.at(1)] * 10, namespace=name)
        left[name] = []
    for seconds in (30, 200, 600, 6_000):
        await bench.clock.sleep(seconds)
        for name, counts in left.items():
            counts.append((await bench.store.counts(name))[TimerStatus.COMPLETED])
    assert left == {
        "short": [10, 0, 0, 0],
        "service": [10, 10, 0, 0],
        "long": [10, 10, 10, 0],
        "ever": [10, 10, 10, 10],
    }


@on_virtual_time
async def test_a_namespace_has_a_retention_even_if_the_service_has_none() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.create("kept", 1)
    await bench.store.add_namespace(kept("short", 60))
    await bench.create_many("t", [bench.at(1)] * 10, namespace="short")
    await bench.clock.sleep(200)
    assert (await bench.store.counts("short"))[TimerStatus.COMPLETED] == 0
    assert await bench.status("kept") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_large_namespace_keeps_no_other_waiting() -> None:
    bench = EngineBench()
    await bench.start()
    for name, count in (("large", 3_000), ("small", 10)):
        await bench.store.add_namespace(kept(name, 600))
        await bench.create_many("t", [bench.at(1)] * count, namespace=name)
    await bench.clock.sleep(800)
    order = [(namespace, count) for _, namespace, count in bench.store.pruned if count]
    assert order[:3] == [("large", 500), ("small", 10), ("large", 500)]
    assert order.count(("large", 500)) == 6


@on_virtual_time
async def test_a_retention_changed_at_run_time_holds_from_the_next_round_on() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(300)
    await bench.store.change_namespace("default", NamespaceOptions(retention_seconds=0))
    await bench.clock.sleep(3_000)
    assert await bench.status("t") is TimerStatus.COMPLETED
    await bench.store.change_namespace("default", NamespaceOptions(retention_seconds=60))
    await bench.clock.sleep(61)
    assert await bench.count(TimerStatus.COMPLETED) == 0


@on_virtual_time
async def test_a_namespace_that_is_to_be_kept_is_not_pruned_by_a_pass_under_way() -> None:
    bench = EngineBench()
    await bench.start()
    for number in range(1_000):
        await bench.store.add_namespace(kept(f"n{number:03}", 600))
    await bench.create_many("t", [bench.at(1)], namespace="n999", num_shards=1)
    await bench.clock.sleep(560)
    while len(bench.store.pruned) % 1_000 != 1:
        await bench.clock.sleep(0.05)
    assert bench.clock.monotonic() > 601, "the pass will come to it when it is old enough"
    await bench.store.change_namespace("n999", NamespaceOptions(retention_seconds=0))
    await bench.clock.sleep(300)
    assert (await bench.store.counts("n999"))[TimerStatus.COMPLETED] == 1


@on_virtual_time
async def test_all_are_not_pruned_together_any_more_when_one_is_to_be_kept_meanwhile() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 3_000)
    while not any(count for _, _, count in bench.store.pruned):
        await bench.clock.sleep(0.01)
    await bench.store.change_namespace("default", NamespaceOptions(retention_seconds=0))
    await bench.clock.sleep(300)
    assert await bench.count(TimerStatus.COMPLETED) == 2_500


@on_virtual_time
async def test_all_namespaces_are_read_once_however_many_batches_there_are() -> None:
    bench = EngineBench(retention_seconds=600)
    await bench.start()
    for number in range(100):
        await bench.store.add_namespace(kept(f"n{number:02}", 300))
        await bench.create_many("t", [bench.at(1)] * 6, namespace=f"n{number:02}", num_shards=1)
    await bench.clock.sleep(120)
    before = bench.store.reads_of_all_namespaces
    await bench.clock.sleep(600)
    assert (await bench.store.counts())[TimerStatus.COMPLETED] == 0
    assert len(bench.store.pruned) >= 1_000
    assert bench.store.reads_of_all_namespaces == before
