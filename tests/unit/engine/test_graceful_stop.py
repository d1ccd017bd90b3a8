"""A node that stops hands its shards over at once, and nothing is sent twice because of it."""

import asyncio

from duetime.domain.outcome import INTERRUPTED
from duetime.domain.timer import TimerStatus
from duetime.testing import Hang, Succeed, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import BEAT_SECONDS, LEASE_SECONDS, ClusterBench
from tests.unit.engine.engine_bench import GOOD, SLOW


@on_virtual_time
async def test_the_others_own_everything_in_no_time() -> None:
    bench = ClusterBench()
    one, two, three = await bench.start_spread("one", "two", "three")
    await one.engine.stop(30)
    await bench.run(0.1)
    assert await bench.shares() == {"two": 8, "three": 8}
    assert two.engine.shards_owned == three.engine.shards_owned == 8
    assert list(await bench.members()) == ["three", "two"]
    assert not one.engine.is_running
    assert one.engine.shards_owned == 0


@on_virtual_time
async def test_without_signals_it_takes_about_a_heartbeat() -> None:
    bench = ClusterBench()
    bench.hub.lost = 1.0
    one, _ = await bench.start("one", "two")
    await bench.run(5.4)
    await one.engine.stop(30)
    await bench.run(BEAT_SECONDS + 0.1)
    assert await bench.shares() == {"two": 16}


@on_virtual_time
async def test_every_timer_fires_once_and_on_time_while_nodes_are_replaced() -> None:
    bench = ClusterBench(horizon_ms=200)
    bench.destination.script(GOOD, Succeed(0.05))
    old = await bench.start_spread("one", "two", "three")
    keeper = (await bench.start("keeper"))[0]
    for number in range(1_000):
        await bench.create(f"t-{number}", 0.5 + number / 100, through=keeper)
    for node in old:
        await bench.run(1.2)
        await bench.start(f"new {node.name}")
        await bench.run(1.2)
        await node.engine.stop(30)
    await bench.run(5)
    assert await bench.count(TimerStatus.COMPLETED) == 1_000
    assert all(len(senders) == 1 for senders in bench.senders.values())
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}
    assert max(bench.latenesses_ms()) < 200
    assert sorted(await bench.members()) == ["keeper", "new one", "new three", "new two"]


@on_virtual_time
async def test_a_long_attempt_ends_where_it_began_and_its_shard_does_not_wait_for_it() -> None:
    bench = ClusterBench()
    bench.destination.script(SLOW, Succeed(12))
    one, _ = await bench.start_spread("one", "two")
    long_id, *quick_ids = await bench.ids_of(one, 40)
    await bench.create(long_id, 0.5, url=SLOW, through=one)
    for timer_id in quick_ids:
        await bench.create(timer_id, 2, through=one)
    await bench.run(1)
    stopping = asyncio.create_task(one.engine.stop(30))
    await bench.run(0.2)
    assert await bench.shares() == {"two": 16}
    await bench.run(2)
    assert await bench.count(TimerStatus.COMPLETED) == 39
    assert max(bench.latenesses_ms()) == 0
    await stopping
    assert bench.clock.monotonic() < 13.5
    await bench.run(0.1)
    assert await bench.shares() == {"two": 16}
    assert await bench.count(TimerStatus.COMPLETED) == 40
    assert bench.senders.pop(long_id) == ["one"]
    assert all(senders == ["two"] for senders in bench.senders.values())


@on_virtual_time
async def test_an_attempt_that_outlasts_the_grace_is_made_again_by_another_node() -> None:
    bench = ClusterBench()
    bench.destination.script(SLOW, Hang(), Succeed())
    one, _ = await bench.start_spread("one", "two")
    (timer_id,) = await bench.ids_of(one, 1)
    await bench.create(timer_id, 0.5, url=SLOW, through=one)
    await bench.run(1)
    await one.engine.stop(5)
    await bench.run(0.2)
    assert bench.senders[timer_id] == ["one", "two"]
    first, second = bench.destination.attempts
    assert (first.abandoned, first.claim.attempt, second.claim.attempt) == (True, 1, 2)
    assert first.claim.delivery_id == second.claim.delivery_id
    timer = await bench.timer(timer_id)
    assert timer.status is TimerStatus.COMPLETED
    assert [attempt.error for attempt in timer.attempts] == [INTERRUPTED, None]


@on_virtual_time
async def test_unsent_claims_are_sent_by_the_others_as_first_attempts() -> None:
    bench = ClusterBench(horizon_ms=5_000)
    one, _ = await bench.start_spread("one", "two")
    ids = await bench.ids_of(one, 20)
    for timer_id in ids:
        await bench.create(timer_id, 3, through=one)
    await bench.run(1)
    assert await bench.count(TimerStatus.EXECUTING) == 20
    await one.engine.stop(30)
    await bench.run(3)
    assert [bench.senders[timer_id] for timer_id in ids] == [["two"]] * 20
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}
    assert set(bench.latenesses_ms()) == {0}


@on_virtual_time
async def test_claims_that_turn_up_while_a_node_stops_are_left_to_the_others() -> None:
    """The node would not wait for the end of an attempt that began then."""
    bench = ClusterBench()
    bench.destination.script(GOOD, Succeed(1.2))
    bench.destination.script(SLOW, Succeed(2))
    one, _ = await bench.start_spread("one", "two")
    usual_id, lost_id = await bench.ids_of(one, 2)
    await bench.create(usual_id, 0, through=one)
    await bench.run(0.1)
    one.store.loses.add("claim_due")
    await bench.create(lost_id, 0, url=SLOW, through=one)
    await bench.run(0.001)
    assert not one.store.loses
    one.store.heartbeat_answer_seconds = 0.05
    await one.engine.stop(30)
    assert one.engine.in_flight == 0
    await bench.run(5)
    assert bench.senders == {usual_id: ["one"], lost_id: ["two"]}
    assert await bench.count(TimerStatus.COMPLETED) == 2
    assert {attempt.claim.attempt for attempt in bench.destination.attempts} == {1}


@on_virtual_time
async def test_an_attempt_that_a_stop_cut_off_counts_though_its_claim_turns_up_again() -> None:
    bench = ClusterBench()
    bench.destination.script(SLOW, Succeed(20), Succeed())
    bench.destination.script(GOOD, Succeed(0.105))
    one, _ = await bench.start_spread("one", "two")
    cut_id, lost_id, usual_id = await bench.ids_of(one, 3)
    await bench.create(cut_id, 0, url=SLOW, through=one)
    await bench.create(usual_id, 0, through=one)
    await bench.run(0.1)
    one.store.loses.add("claim_due")
    await bench.create(lost_id, 0, url=SLOW, through=one)
    await bench.run(0.001)
    # The search for the lost claim comes after the cut, and before the last outcomes are written.
    one.store.heartbeat_answer_seconds = 0.05
    one.store.settle_request_seconds = 0.2
    await one.engine.stop(0.01)
    await bench.run(30)
    numbers = [each.claim.attempt for each in bench.destination.attempts_of(cut_id)]
    assert numbers == [1, 2]
    assert bench.senders[cut_id] == ["one", "two"]


@on_virtual_time
async def test_the_last_node_leaves_everything_free_and_the_next_goes_on() -> None:
    bench = ClusterBench()
    one, two = await bench.start_spread("one", "two")
    await asyncio.gather(one.engine.stop(30), two.engine.stop(30))
    assert await bench.shares() == {None: 16}
    assert await bench.members() == {}
    await bench.create("t", 60)
    await bench.run(3_600)
    await bench.start("three")
    await bench.run(0.1)
    assert await bench.status("t") is TimerStatus.COMPLETED


@on_virtual_time
async def test_a_node_that_stops_without_its_store_is_missed_within_the_lease_time() -> None:
    bench = ClusterBench()
    one, two = await bench.start_spread("one", "two")
    ids = await bench.ids_of(one, 20)
    one.faults.lost_before = 1.0
    await one.engine.stop(0)
    for timer_id in ids:
        await bench.create(timer_id, 0, through=two)
    await bench.run(LEASE_SECONDS)
    assert await bench.shares() == {"two": 16}
    assert await bench.count(TimerStatus.COMPLETED) == 20
