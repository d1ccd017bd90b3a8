"""Shards of a namespace that is added while the engine runs get an owner at once."""

import asyncio

from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.testing import Hang, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import ClusterBench
from tests.unit.engine.engine_bench import HANGING, EngineBench


@on_virtual_time
async def test_timers_of_new_shards_are_sent_on_time_by_a_node_alone() -> None:
    bench = EngineBench(poll_seconds=3_600)
    await bench.start()
    await bench.create("old", 10)
    await bench.store.add_namespace(Namespace("large", 64))
    await bench.engine.own_new_shards()
    assert bench.engine.shards_owned == bench.engine.shards == 64
    assert {state.owner for state in await bench.store.shards()} == {"test"}
    await bench.create_many("t", [bench.at(1)] * 200, namespace="large", num_shards=64)
    await bench.clock.sleep(1.1)
    assert await bench.count(TimerStatus.COMPLETED) == 200
    await bench.clock.sleep(10)
    assert await bench.status("old") is TimerStatus.COMPLETED


@on_virtual_time
async def test_attempts_in_the_old_shards_go_on() -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create("t", 1, url=HANGING)
    await bench.clock.sleep(2)
    await bench.store.add_namespace(Namespace("large", 64))
    await bench.engine.own_new_shards()
    await bench.clock.sleep(60)
    assert await bench.status("t") is TimerStatus.FAILED
    assert len(bench.destination.attempts) == 1


@on_virtual_time
async def test_timers_due_before_the_shard_had_an_owner_are_found() -> None:
    bench = EngineBench(poll_seconds=3_600)
    await bench.start()
    await bench.store.add_namespace(Namespace("large", 64))
    await bench.create_many("t", [bench.at(1)] * 200, namespace="large", num_shards=64)
    await bench.clock.sleep(60)
    await bench.engine.own_new_shards()
    await bench.clock.sleep(0.1)
    assert await bench.count(TimerStatus.COMPLETED) == 200


@on_virtual_time
async def test_a_shard_taken_during_the_search_for_lost_claims_is_claimed_from_at_once() -> None:
    """The search goes by the shards held when it began; a second one is taken while it runs."""
    bench = EngineBench(poll_seconds=3_600)
    await bench.start()
    await bench.store.add_namespace(Namespace("first", 17))
    await bench.engine.own_new_shards()
    bench.store.search_seconds = 0.1
    await bench.store.add_namespace(Namespace("second", 64))
    await bench.create_many("t", [bench.at(0.05)] * 200, namespace="second", num_shards=64)
    await bench.clock.sleep(0.01)
    await bench.engine.own_new_shards()
    await bench.clock.sleep(0.5)
    assert await bench.count(TimerStatus.COMPLETED) == 200


@on_virtual_time
async def test_without_new_shards_nothing_changes() -> None:
    bench = EngineBench()
    await bench.start()
    before = await bench.store.shards()
    await bench.store.add_namespace(Namespace("small", 4))
    await bench.engine.own_new_shards()
    assert await bench.store.shards() == before


@on_virtual_time
async def test_two_namespaces_added_at_the_same_time_are_no_trouble() -> None:
    bench = EngineBench()
    await bench.start()
    await bench.store.add_namespace(Namespace("large", 64))
    await bench.store.add_namespace(Namespace("larger", 128))
    await asyncio.gather(bench.engine.own_new_shards(), bench.engine.own_new_shards())
    assert bench.engine.shards_owned == 128


@on_virtual_time
async def test_an_engine_that_does_not_run_takes_nothing() -> None:
    bench = EngineBench()
    await bench.engine.own_new_shards()
    await bench.start()
    await bench.engine.stop(1)
    await bench.store.add_namespace(Namespace("large", 64))
    await bench.engine.own_new_shards()
    assert {state.owner for state in await bench.store.shards()} == {None}


@on_virtual_time
async def test_members_share_new_shards_without_waiting_for_their_beats() -> None:
    bench = ClusterBench()
    one, _ = await bench.start_spread("one", "two")
    await bench.store.add_namespace(Namespace("large", 64))
    await one.engine.own_new_shards()
    await bench.run(0.1)
    assert await bench.shares() == {"one": 32, "two": 32}


@on_virtual_time
async def test_the_node_that_adds_a_namespace_looks_at_once_even_if_signals_are_lost() -> None:
    bench = ClusterBench()
    bench.hub.lost = 1.0
    (one,) = await bench.start("one")
    await bench.run(0.3)
    await bench.store.add_namespace(Namespace("large", 64))
    await one.engine.own_new_shards()
    await bench.run(0.1)
    assert await bench.shares() == {"one": 64}
