"""Nodes share the shards evenly, and shards move without anything being late or sent twice."""

from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.testing import Succeed, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import (
    BEAT_SECONDS,
    POLL_SECONDS,
    ClusterBench,
)
from tests.unit.engine.engine_bench import GOOD


@on_virtual_time
async def test_a_node_alone_owns_everything() -> None:
    bench = ClusterBench()
    (one,) = await bench.start("one")
    assert await bench.shares() == {"one": 16}
    assert one.engine.shards_owned == one.engine.shards == 16
    assert one.engine.members == 1
    assert one.engine.is_running


@on_virtual_time
async def test_nodes_that_join_get_their_share_at_once() -> None:
    bench = ClusterBench()
    (one,) = await bench.start("one")
    (two,) = await bench.start("two")
    await bench.run(0.1)
    assert await bench.shares() == {"one": 8, "two": 8}
    (three,) = await bench.start("three")
    await bench.run(0.1)
    assert sorted((await bench.shares()).values()) == [5, 5, 6]
    owned = [node.engine.shards_owned for node in (one, two, three)]
    assert sorted(owned) == [5, 5, 6]
    assert [node.engine.members for node in (one, two, three)] == [3, 3, 3]


@on_virtual_time
async def test_without_signals_nodes_notice_each_other_by_their_heartbeats() -> None:
    bench = ClusterBench()
    bench.hub.lost = 1.0
    await bench.start("one")
    await bench.run(0.3)
    await bench.start("two")
    await bench.run(2 * BEAT_SECONDS + 0.1)
    assert await bench.shares() == {"one": 8, "two": 8}


@on_virtual_time
async def test_shards_of_a_namespace_that_comes_later_are_shared_too() -> None:
    bench = ClusterBench()
    await bench.start_spread("one", "two")
    await bench.store.add_namespace(Namespace("large", 64))
    await bench.run(2 * BEAT_SECONDS)
    assert await bench.shares() == {"one": 32, "two": 32}


@on_virtual_time
async def test_no_shard_moves_while_no_node_joins_or_leaves() -> None:
    bench = ClusterBench()
    await bench.start_spread("one", "two", "three")
    before = await bench.epochs()
    bench.clock.jump_wall(86_400)
    await bench.run(300)
    bench.clock.jump_wall(-7 * 86_400)
    await bench.run(300)
    assert await bench.epochs() == before


@on_virtual_time
async def test_every_timer_fires_once_and_on_time_while_nodes_join() -> None:
    bench = ClusterBench()
    bench.destination.script(GOOD, Succeed(0.01))
    (one,) = await bench.start("one")
    for number in range(600):
        await bench.create(f"t-{number}", 0.5 + number / 100, through=one)
    for name in ("two", "three", "four"):
        await bench.run(1.5)
        await bench.start(name)
    await bench.run(3)
    assert await bench.count(TimerStatus.COMPLETED) == 600
    assert all(len(senders) == 1 for senders in bench.senders.values())
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}
    assert {sender for (sender,) in bench.senders.values()} == {"one", "two", "three", "four"}
    assert max(bench.latenesses_ms()) < 100


@on_virtual_time
async def test_a_shard_moves_only_when_claims_under_way_have_come_back() -> None:
    bench = ClusterBench()
    (one,) = await bench.start("one")
    one.store.claim_answer_seconds = 0.3
    for number in range(64):
        await bench.create(f"t-{number}", 1, through=one)
    await bench.run(1.1)
    assert await bench.count(TimerStatus.EXECUTING) == 64
    await bench.start("two")
    await bench.run(3)
    assert await bench.count(TimerStatus.COMPLETED) == 64
    assert await bench.shares() == {"one": 8, "two": 8}
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}


@on_virtual_time
async def test_unsent_claims_move_along_with_their_shard() -> None:
    bench = ClusterBench(horizon_ms=5_000)
    (one,) = await bench.start("one")
    for number in range(64):
        await bench.create(f"t-{number}", 4, through=one)
    await bench.run(1)
    assert await bench.count(TimerStatus.EXECUTING) == 64
    await bench.start("two")
    await bench.run(0.2)
    assert await bench.shares() == {"one": 8, "two": 8}
    await bench.run(4)
    assert {sender for (sender,) in bench.senders.values()} == {"one", "two"}
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}
    assert set(bench.latenesses_ms()) == {0}


@on_virtual_time
async def test_a_timer_for_a_shard_of_another_node_fires_on_time() -> None:
    bench = ClusterBench()
    one, two = await bench.start_spread("one", "two")
    await bench.run(1.7)
    (timer_id,) = await bench.ids_of(two, 1)
    await bench.create(timer_id, 0.2, through=one)
    await bench.run(1)
    assert bench.latenesses_ms(timer_id) == [0]
    assert bench.senders[timer_id] == ["two"]


@on_virtual_time
async def test_a_lost_signal_costs_one_poll_at_most() -> None:
    bench = ClusterBench()
    one, two = await bench.start_spread("one", "two")
    await bench.run(1.7)
    bench.hub.lost = 1.0
    (timer_id,) = await bench.ids_of(two, 1)
    await bench.create(timer_id, 0.2, through=one)
    await bench.run(1 + POLL_SECONDS)
    (lateness_ms,) = bench.latenesses_ms(timer_id)
    assert 0 < lateness_ms <= POLL_SECONDS * 1_000


@on_virtual_time
async def test_after_signals_were_missed_everything_is_looked_at_once() -> None:
    bench = ClusterBench()
    one, two = await bench.start_spread("one", "two")
    await bench.run(1.7)
    bench.hub.lost = 1.0
    (timer_id,) = await bench.ids_of(two, 1)
    await bench.create(timer_id, 0.2, through=one)
    await bench.run(0.1)
    two.signals.reconnected()
    await bench.run(0.2)
    assert bench.latenesses_ms(timer_id) == [0]
