"""A node that cannot know whether its write took place finds out."""

import asyncio
from collections.abc import Sequence
from typing import Any

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.ports.membership import NodeFacts
from duetime.ports.store import ClaimBatch, CreateRequest, OnExisting
from duetime.testing import Fail, Hang, Succeed, VirtualTimeLoop, make_timer, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import (
    BEAT_SECONDS,
    STEP_DOWN_SECONDS,
    ClusterBench,
)
from tests.unit.engine.engine_bench import GOOD, HANGING, EngineBench, WatchedStore


@on_virtual_time
async def test_a_shard_that_was_taken_unnoticed_is_taken_again() -> None:
    bench = ClusterBench()
    one, two = await bench.start("one", "two")
    two.store.loses.add("claim_shards")
    await bench.run(2 * BEAT_SECONDS)
    assert not two.store.loses
    assert await bench.shares() == {"one": 8, "two": 8}
    assert (one.engine.shards_owned, two.engine.shards_owned) == (8, 8)


@on_virtual_time
async def test_a_shard_that_was_taken_unnoticed_and_belongs_to_another_by_now_is_let_go() -> None:
    bench = ClusterBench()
    one, two = await bench.start("one", "two")
    two.store.loses.add("claim_shards")
    await bench.run(0.01)
    assert not two.store.loses
    (three,) = await bench.start("three")
    await bench.run(3 * BEAT_SECONDS)
    owned = [node.engine.shards_owned for node in (one, two, three)]
    assert sorted(owned) == [5, 5, 6]
    for number in range(64):
        await bench.create(f"t-{number}", 0.1, through=one)
    await bench.run(1)
    assert await bench.count(TimerStatus.COMPLETED) == 64


@on_virtual_time
async def test_a_shard_that_was_released_unnoticed_is_not_used_under_its_old_lease() -> None:
    bench = ClusterBench()
    bench.hub.lost = 1.0
    (one,) = await bench.start("one")
    await bench.run(10.5)
    await bench.store.heartbeat("guest", NodeFacts(), join=True)
    one.store.loses.add("release_shards")
    await bench.run(0.52)
    assert not one.store.loses
    one.faults.lost_before = 1.0
    await bench.run(0.8)
    await bench.store.leave("guest")
    one.faults.heal()
    await bench.run(1)
    # All belongs to the first node again, until a node joins that it does not know yet.
    await bench.start("two")
    for number in range(64):
        await bench.create(f"t-{number}", 0.2 + number / 1_000, through=one)
    await bench.run(5)
    assert await bench.count(TimerStatus.COMPLETED) == 64
    assert all(len(senders) == 1 for senders in bench.senders.values())


@on_virtual_time
async def test_a_release_that_failed_is_made_up_for() -> None:
    bench = ClusterBench()
    (one,) = await bench.start("one")
    await bench.run(1)
    one.faults.lost_before = 1.0
    await bench.run(0.3)
    (two,) = await bench.start("two")
    await bench.run(0.1)
    one.faults.heal()
    await bench.run(2 * BEAT_SECONDS + 0.1)
    assert (one.engine.shards_owned, two.engine.shards_owned) == (8, 8)


@on_virtual_time
async def test_claims_whose_search_failed_are_searched_for_again() -> None:
    bench = ClusterBench(horizon_ms=60_000)
    (one,) = await bench.start("one")
    await bench.create("t", 3.3, through=one)
    await bench.run(3.1)
    # While nothing runs the leases run out, and when it is due it must not be sent yet.
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.skip(STEP_DOWN_SECONDS)
    one.store.loses.add("executing")
    await bench.run(3)
    assert not one.store.loses
    assert bench.senders == {"t": ["one"]}
    assert bench.destination.attempts[0].claim.attempt == 1


@on_virtual_time
async def test_claims_made_unnoticed_are_found_even_in_a_shard_that_was_to_move() -> None:
    bench = ClusterBench(horizon_ms=0)
    bench.destination.script(HANGING, Hang())
    (one,) = await bench.start("one")
    for number in range(64):
        await bench.create(f"long-{number}", 0.5, url=HANGING, through=one)
    await bench.run(0.9)
    for number in range(64):
        await bench.create(f"t-{number}", 0.1, through=one)
    one.store.loses.add("claim_due")
    await bench.run(0.101)
    assert not one.store.loses
    assert await bench.count(TimerStatus.EXECUTING) == 128
    # All shards are busy with long attempts, which go on when some shards move.
    await bench.start("two")
    await bench.run(0.5)
    assert await bench.shares() == {"one": 8, "two": 8}
    assert await bench.count(TimerStatus.COMPLETED) == 64
    assert max(bench.latenesses_ms()) <= 500


class DeafStore(WatchedStore):
    """Does its work, and its answers are lost."""

    loses_settlements = False
    loses_one_claim = False

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        applied = await super().settle(settlements)
        if self.loses_settlements:
            raise StoreUnavailable("the answer got lost")
        return applied

    async def claim_due(self, *args: Any, **options: Any) -> ClaimBatch:
        batch = await super().claim_due(*args, **options)
        if self.loses_one_claim and batch.claims:
            self.loses_one_claim = False
            raise StoreUnavailable("the answer got lost")
        return batch


class DeafBench(EngineBench):
    store: DeafStore

    def new_store(self) -> DeafStore:
        return DeafStore(self.clock)


@on_virtual_time
async def test_the_claim_of_a_timer_that_was_created_again_is_not_taken_for_the_old_one() -> None:
    bench = DeafBench()
    bench.destination.script("t", Fail(), Succeed())
    await bench.start()
    bench.store.loses_settlements = True
    await bench.create("t", 1, retry_policy=RetryPolicy(initial_interval_ms=60_000))
    await bench.clock.sleep(2)
    removed = await bench.store.remove_if_pending(TimerKey("default", "t"))
    assert removed is not None
    assert removed.applied
    bench.store.loses_one_claim = True
    again = make_timer(
        "t",
        execute_at=bench.at(0.01),
        created_at=bench.clock.now(),
        callback=HttpCallback(url=GOOD),
    )
    await bench.store.create([CreateRequest(again, OnExisting.KEEP)])
    bench.engine.announce(again.shard, again.due_at)
    await bench.clock.sleep(1)
    bench.store.loses_settlements = False
    await bench.clock.sleep(60)
    assert await bench.status("t") is TimerStatus.COMPLETED
