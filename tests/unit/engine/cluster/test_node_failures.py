"""Nodes that die, are cut off, or lose their store together with all others."""

import asyncio

from structlog.typing import EventDict

from duetime.domain.outcome import INTERRUPTED
from duetime.domain.timer import TimerStatus
from duetime.testing import Hang, Succeed, VirtualTimeLoop, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import (
    BEAT_SECONDS,
    LEASE_SECONDS,
    POLL_SECONDS,
    STEP_DOWN_SECONDS,
    ClusterBench,
)
from tests.unit.engine.engine_bench import HANGING, SLOW


@on_virtual_time
async def test_the_timers_of_a_killed_node_fire_within_the_lease_time() -> None:
    bench = ClusterBench()
    one, two, three = await bench.start_spread("one", "two", "three")
    await bench.run(3.3)
    ids = await bench.ids_of(one, 50)
    one.kill()
    for timer_id in ids:
        await bench.create(timer_id, 0.1, through=two)
    await bench.run(LEASE_SECONDS)
    assert await bench.count(TimerStatus.COMPLETED) == 50
    assert await bench.shares() == {"two": 8, "three": 8}
    assert {sender for (sender,) in bench.senders.values()} == {"two", "three"}
    assert two.engine.members == three.engine.members == 2


@on_virtual_time
async def test_attempts_of_a_killed_node_are_repeated_with_the_same_delivery_id() -> None:
    bench = ClusterBench()
    bench.destination.script(HANGING, Hang(), Succeed())
    one, _ = await bench.start_spread("one", "two")
    (timer_id,) = await bench.ids_of(one, 1)
    await bench.create(timer_id, 0.5, url=HANGING, through=one)
    await bench.run(1)
    one.kill()
    await bench.run(LEASE_SECONDS)
    assert bench.senders[timer_id] == ["one", "two"]
    first, second = bench.destination.attempts
    assert (first.claim.attempt, second.claim.attempt) == (1, 2)
    assert first.claim.delivery_id == second.claim.delivery_id
    await bench.run(60)
    timer = await bench.timer(timer_id)
    assert timer.status is TimerStatus.COMPLETED
    assert [attempt.error for attempt in timer.attempts] == [INTERRUPTED, None]


@on_virtual_time
async def test_a_node_whose_process_is_seen_to_be_gone_is_replaced_within_a_heartbeat() -> None:
    bench = ClusterBench(same_machine=True)
    one, _ = await bench.start_spread("one", "two")
    one.kill()
    await bench.run(BEAT_SECONDS + 0.1)
    assert await bench.shares() == {"two": 16}


@on_virtual_time
async def test_a_node_that_dies_while_shards_move_to_it_costs_no_timer() -> None:
    bench = ClusterBench()
    bench.hub.lost = 1.0
    (one,) = await bench.start("one")
    await bench.run(0.5)
    (two,) = await bench.start("two")
    two.kill()
    for number in range(64):
        await bench.create(f"t-{number}", 2, through=one)
    await bench.run(LEASE_SECONDS + 2)
    assert await bench.count(TimerStatus.COMPLETED) == 64
    assert await bench.shares() == {"one": 16}


def test_a_node_that_is_cut_off_stops_in_time_and_comes_back(logs: list[EventDict]) -> None:
    @on_virtual_time
    async def scenario() -> None:
        bench = ClusterBench()
        bench.destination.script(SLOW, Succeed(20))
        one, two = await bench.start_spread("one", "two")
        slow_id, *ids = await bench.ids_of(one, 400)
        await bench.create(slow_id, 0.5, url=SLOW, through=one)
        for number, timer_id in enumerate(ids):
            await bench.create(timer_id, 1 + number / 20, through=one)
        await bench.run(1.5)
        one.cut_off()
        await bench.run(STEP_DOWN_SECONDS)
        runs = [one.engine.is_running]
        sent_before = len(one.sent())
        await bench.run(30)
        # It sent nothing after stepping down, and the other node has sent everything in time.
        assert len(one.sent()) == sent_before
        assert await bench.count(TimerStatus.COMPLETED) == 400
        assert max(bench.latenesses_ms()) <= LEASE_SECONDS * 1_000
        assert bench.senders[slow_id] == ["one", "two"]
        slow = await bench.timer(slow_id)
        settled_at = slow.updated_at
        one.mend()
        await bench.run(2 * BEAT_SECONDS)
        # Its late outcomes change nothing, and it gets its share again.
        assert (await bench.timer(slow_id)).updated_at == settled_at
        assert [attempt.error for attempt in slow.attempts] == [INTERRUPTED, None]
        assert (one.engine.shards_owned, two.engine.shards_owned) == (8, 8)
        assert [*runs, one.engine.is_running] == [False, True]
        for timer_id in await bench.ids_of(two, 20, "after"):
            await bench.create(timer_id, 0.2, through=one)
        for number in range(64):
            await bench.create(f"all-{number}", 0.2, through=two)
        await bench.run(1)
        assert await bench.count(TimerStatus.PENDING) == 0
        assert any(timer_id.startswith("all") for timer_id in one.sent())

    scenario()
    assert [entry["node"] for entry in logs if entry["event"] == "node.forgotten"] == ["one"]
    assert "timer.settlement_refused" in {entry["event"] for entry in logs}


@on_virtual_time
async def test_a_node_that_is_cut_off_for_a_moment_goes_on_as_if_nothing_had_been() -> None:
    bench = ClusterBench(horizon_ms=10_000)
    one, _ = await bench.start_spread("one", "two")
    before = await bench.epochs()
    ids = await bench.ids_of(one, 30)
    for number, timer_id in enumerate(ids):
        await bench.create(timer_id, 1 + number / 10, through=one)
    await bench.run(0.9)
    one.faults.lost_before = 1.0
    await bench.run(STEP_DOWN_SECONDS - 1.5)
    one.faults.heal()
    await bench.run(5)
    assert await bench.epochs() == before
    assert [bench.senders[timer_id] for timer_id in ids] == [["one"]] * 30
    assert set(bench.latenesses_ms()) == {0}
    assert await bench.count(TimerStatus.COMPLETED) == 30


@on_virtual_time
async def test_claims_held_back_under_a_doubtful_lease_are_sent_once_it_is_valid() -> None:
    bench = ClusterBench(horizon_ms=60_000)
    one, _ = await bench.start_spread("one", "two")
    before = await bench.epochs()
    ids = await bench.ids_of(one, 100)
    for number, timer_id in enumerate(ids):
        await bench.create(timer_id, 1 + number / 10, through=one)
    await bench.run(0.9)
    one.faults.lost_before = 1.0
    # Longer than until it steps down, shorter than until others take over.
    await bench.run(STEP_DOWN_SECONDS + 1.3)
    assert not one.engine.is_running
    healed_seconds = bench.clock.monotonic()
    assert not bench.sent_since(healed_seconds - 1)
    one.faults.heal()
    await bench.run(10)
    assert await bench.epochs() == before
    assert [bench.senders[timer_id] for timer_id in ids] == [["one"]] * 100
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}
    assert max(bench.latenesses_ms()) <= 3_000
    assert await bench.count(TimerStatus.COMPLETED) == 100


@on_virtual_time
async def test_the_time_that_an_answer_takes_counts_against_the_owner() -> None:
    bench = ClusterBench(horizon_ms=60_000)
    one, _ = await bench.start_spread("one", "two")
    ids = await bench.ids_of(one, 400)
    for number, timer_id in enumerate(ids):
        await bench.create(timer_id, 1 + number / 20, through=one)
    await bench.run(2)
    # Almost too long for the answer to be waited for.
    one.store.heartbeat_answer_seconds = 1.4
    await bench.run(BEAT_SECONDS)
    one.cut_off()
    await bench.run(30)
    assert await bench.count(TimerStatus.COMPLETED) == 400
    last_sent_seconds = max(
        bench.sent_seconds(attempt)
        for attempt in bench.destination.attempts
        if bench.senders[attempt.claim.id] == ["one"]
    )
    assert last_sent_seconds < one.store.last_beat_seconds + STEP_DOWN_SECONDS


@on_virtual_time
async def test_a_node_that_beats_while_it_is_being_forgotten_stays() -> None:
    bench = ClusterBench(horizon_ms=60_000)
    bench.hub.lost = 1.0
    one, two = await bench.start("one", "two")
    await bench.run(3)
    before = await bench.epochs()
    ids = await bench.ids_of(one, 100)
    for number, timer_id in enumerate(ids):
        await bench.create(timer_id, 1 + number / 5, through=one)
    await bench.run(0.5)
    two.store.forget_request_seconds = 0.7
    one.faults.lost_before = 1.0
    # Until its last beat has stood still for long enough, and not until it is forgotten.
    await bench.run(one.store.last_beat_seconds + 8.3 - bench.clock.monotonic())
    one.faults.heal()
    await bench.run(20)
    assert await bench.epochs() == before
    assert [bench.senders[timer_id] for timer_id in ids] == [["one"]] * 100


def test_no_shard_moves_when_the_store_is_away_for_all_nodes(logs: list[EventDict]) -> None:
    @on_virtual_time
    async def scenario() -> None:
        bench = ClusterBench()
        bench.destination.script(HANGING, Succeed(25))
        nodes = await bench.start_spread("one", "two", "three")
        before = await bench.epochs()
        for number in range(32):
            await bench.create(f"long-{number}", 0.5, url=HANGING, through=nodes[0])
            await bench.create(f"t-{number}", 10, through=nodes[1])
        await bench.run(3.7)
        for node in nodes:
            node.cut_off()
        await bench.run(30)
        # Attempts under way have been answered meanwhile; nothing new was sent.
        assert len(bench.destination.attempts) == 32
        for node in nodes:
            node.mend()
        await bench.run(7)
        assert await bench.epochs() == before
        assert await bench.count(TimerStatus.COMPLETED) == 64
        assert all(len(senders) == 1 for senders in bench.senders.values())

    scenario()
    assert not {"node.dead", "node.forgotten", "shards.lost"} & {entry["event"] for entry in logs}


@on_virtual_time
async def test_no_shard_moves_when_the_machine_was_suspended() -> None:
    bench = ClusterBench()
    nodes = await bench.start_spread("one", "two")
    before = await bench.epochs()
    for number in range(32):
        await bench.create(f"t-{number}", 10, through=nodes[0])
    await bench.run(1)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.skip(3_600)
    await bench.run(3)
    assert await bench.epochs() == before
    assert await bench.count(TimerStatus.COMPLETED) == 32
    assert all(len(senders) == 1 for senders in bench.senders.values())


@on_virtual_time
async def test_a_forgotten_node_takes_its_shards_anew_even_if_they_are_still_free() -> None:
    bench = ClusterBench()
    (one,) = await bench.start("one")
    await bench.run(3.5)
    before = await bench.epochs()
    assert await bench.store.forget_member("one", seen_beat=(await bench.members())["one"])
    await bench.create("t", 2, through=one)
    await bench.run(3)
    assert await bench.epochs() == [epoch + 1 for epoch in before]
    assert (await bench.shares()).keys() == (await bench.members()).keys()
    assert one.engine.shards_owned == 16
    assert bench.senders == {"t": ["one"]}


@on_virtual_time
async def test_a_returning_node_is_not_mistaken_for_the_lost_one() -> None:
    bench = ClusterBench(horizon_ms=2_000)
    bench.hub.lost = 1.0
    (watcher,) = await bench.start("watcher")
    await bench.run(0.5)
    (node,) = await bench.start("node")
    # The node stays at its first beat from here on, and the watcher sees that.
    node.faults.lost_before = 1.0
    await bench.run(7.52)
    assert await bench.store.forget_member("node", seen_beat=1)
    node.faults.heal()
    await bench.run(0.1)
    assert node.engine.shards_owned > 0
    # The watcher would count it as dead from now on, if it mistook the new member for the old one.
    for number in range(64):
        await bench.create(f"t-{number}", 0.6 + number / 1_000, through=node)
    await bench.run(2 * POLL_SECONDS)
    assert await bench.count(TimerStatus.COMPLETED) == 64
    assert all(len(senders) == 1 for senders in bench.senders.values())
    assert (node.engine.shards_owned, watcher.engine.shards_owned) == (8, 8)


def test_a_store_whose_clock_is_off_is_reported(logs: list[EventDict]) -> None:
    @on_virtual_time
    async def scenario() -> None:
        bench = ClusterBench(clock_skew_limit_ms=500)
        bench.store.ahead_ms = 750
        (one,) = await bench.start("one")
        await bench.run(5)
        assert one.engine.clock_watch.is_skewed
        assert one.engine.clock_watch.offset_ms == 750

    scenario()
    assert [entry["log_level"] for entry in logs if entry["event"] == "clock.skewed"] == ["error"]
