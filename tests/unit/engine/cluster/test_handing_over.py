"""Shards move at once, whatever is under way; the former owner finishes that."""

import asyncio

import pytest

from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.ports.membership import NodeFacts
from duetime.testing import Fail, Hang, Succeed, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import BEAT_SECONDS, LEASE_SECONDS, ClusterBench
from tests.unit.engine.engine_bench import HANGING, SLOW

LONG_SECONDS = 20


async def start_with_long_attempts(bench: ClusterBench) -> None:
    """64 attempts in all 16 shards take twenty seconds each, and others come due all the time."""
    bench.destination.script(SLOW, Succeed(LONG_SECONDS))
    (one,) = await bench.start("one")
    for number in range(64):
        await bench.create(f"long-{number}", 0.5, url=SLOW, through=one)
    for number in range(800):
        await bench.create(f"t-{number}", 0.5 + number / 20, through=one)
    await bench.run(1)


async def unfinished(bench: ClusterBench) -> set[str]:
    """The nodes with unfinished leases."""
    view = await bench.store.heartbeat("nobody", NodeFacts(), join=False)
    return {lease.node for lease in view.unfinished}


@on_virtual_time
async def test_a_node_that_joins_gets_its_shards_though_attempts_are_under_way() -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    await bench.start("two")
    await bench.run(0.2)
    assert await bench.shares() == {"one": 8, "two": 8}
    assert await unfinished(bench) == {"one"}
    await bench.run(45)
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert max(bench.latenesses_ms()) <= 200
    assert all(len(senders) == 1 for senders in bench.senders.values())
    assert await unfinished(bench) == set()


@on_virtual_time
async def test_a_node_that_stops_gives_its_shards_away_before_its_attempts_end() -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    (one,) = bench.nodes
    await bench.start("two")
    await bench.run(2)
    stopping = asyncio.create_task(one.engine.stop(40))
    await bench.run(0.2)
    assert await bench.shares() == {"two": 16}
    assert not stopping.done()
    await bench.run(45)
    await stopping
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert max(bench.latenesses_ms()) <= 200
    assert all(len(senders) == 1 for senders in bench.senders.values())


@on_virtual_time
async def test_attempts_of_a_stopped_node_are_repeated_only_if_its_grace_was_too_short() -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    (one,) = bench.nodes
    await bench.start("two")
    await bench.run(1)
    await one.engine.stop(5)
    await bench.run(BEAT_SECONDS + 0.5)
    assert bench.senders["long-0"] == ["one", "two"]
    await bench.run(LONG_SECONDS + 20)
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert {len(senders) for id, senders in bench.senders.items() if id.startswith("long")} == {2}


@on_virtual_time
async def test_attempts_of_a_former_owner_that_dies_are_repeated_by_the_new_one() -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    (one,) = bench.nodes
    await bench.start("two")
    await bench.run(1)
    one.kill()
    await bench.run(LEASE_SECONDS + BEAT_SECONDS)
    assert bench.senders["long-0"] == ["one", "two"]
    assert await unfinished(bench) == set()
    await bench.run(LONG_SECONDS + 20)
    assert await bench.count(TimerStatus.COMPLETED) == 864


@on_virtual_time
async def test_a_former_owner_that_was_cut_off_for_long_changes_nothing() -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    (one,) = bench.nodes
    await bench.start("two")
    await bench.run(1)
    one.cut_off()
    await bench.run(LEASE_SECONDS + BEAT_SECONDS)
    assert bench.senders["long-0"] == ["one", "two"]
    one.mend()
    await bench.run(2 * LONG_SECONDS)
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert bench.senders["long-0"] == ["one", "two"]
    assert (await bench.timer("long-0")).attempt == 2


@on_virtual_time
async def test_a_retry_of_the_former_owner_is_sent_on_time_by_the_new_one() -> None:
    bench = ClusterBench()
    bench.destination.script(SLOW, Fail(5))
    (one,) = await bench.start("one")
    policy = RetryPolicy(initial_interval_ms=1_000, max_retries=1)
    for number in range(16):
        await bench.create(f"t-{number}", 0.5, url=SLOW, through=one, retry_policy=policy)
    await bench.run(1)
    await bench.start("two")
    await bench.run(15)
    assert await bench.count(TimerStatus.FAILED) == 16
    assert {tuple(senders) for senders in bench.senders.values()} == {
        ("one", "one"),
        ("one", "two"),
    }
    assert max(bench.latenesses_ms(SLOW)) <= 5


@pytest.mark.parametrize("lost", ["hand_over", "hand_over request"])
@on_virtual_time
async def test_a_hand_over_whose_answer_or_request_is_lost_repeats_nothing(lost: str) -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    (one,) = bench.nodes
    one.store.loses.add(lost)
    await bench.start("two")
    await bench.run(2 * BEAT_SECONDS + 0.5)
    assert not one.store.loses
    assert await bench.shares() == {"one": 8, "two": 8}
    await bench.run(45)
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert all(len(senders) == 1 for senders in bench.senders.values())


@on_virtual_time
async def test_beside_a_node_of_an_earlier_release_shards_move_when_nothing_is_under_way() -> None:
    """It would recover, and repeat, what is under way."""
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    await bench.start("two", lets_finish=False)
    await bench.run(5)
    assert await bench.shares() == {"one": 16}
    await bench.run(45)
    assert await bench.shares() == {"one": 8, "two": 8}
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert all(len(senders) == 1 for senders in bench.senders.values())


@on_virtual_time
async def test_a_shard_whose_next_owner_dies_before_it_takes_it_goes_back_at_once() -> None:
    bench = ClusterBench()
    await start_with_long_attempts(bench)
    bench.hub.lost = 1.0
    (two,) = await bench.start("two")
    two.kill()
    await bench.run(BEAT_SECONDS + 0.5)
    assert await bench.shares() == {"one": 8, None: 8}
    await bench.run(LEASE_SECONDS)
    assert await bench.shares() == {"one": 16}
    assert await unfinished(bench) == {"one"}
    await bench.run(45)
    assert await bench.count(TimerStatus.COMPLETED) == 864
    assert max(bench.latenesses_ms()) <= (LEASE_SECONDS + BEAT_SECONDS) * 1_000
    assert all(len(senders) == 1 for senders in bench.senders.values())
    assert await unfinished(bench) == set()


@on_virtual_time
async def test_a_shard_that_comes_back_is_unfinished_under_its_old_epoch() -> None:
    bench = ClusterBench()
    bench.destination.script(HANGING, Hang())
    (one,) = await bench.start("one")
    for number in range(32):
        await bench.create(f"long-{number}", 0.5, url=HANGING, through=one)
    await bench.run(1)
    (two,) = await bench.start("two")
    await bench.run(1)
    await two.engine.stop(1)
    await bench.run(0.5)
    assert await bench.shares() == {"one": 16}
    assert await unfinished(bench) == {"one"}
    await bench.run(35)
    assert await bench.count(TimerStatus.FAILED) == 32
    assert all(len(senders) == 1 for senders in bench.senders.values())
    assert await unfinished(bench) == set()
