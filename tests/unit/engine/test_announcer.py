"""A node announces new timers that are due soon to the nodes that own them."""

from duetime.domain.instants import plus_ms
from duetime.domain.timer import TimerStatus
from duetime.testing import on_virtual_time
from tests.unit.engine.cluster.cluster_bench import POLL_SECONDS, BenchNode, ClusterBench


async def quiet_pair(bench: ClusterBench) -> tuple[BenchNode, BenchNode]:
    one, two = await bench.start_spread("one", "two")
    bench.hub.sent.clear()
    return one, two


@on_virtual_time
async def test_timers_of_its_own_shards_are_not_signalled() -> None:
    bench = ClusterBench()
    one, _ = await quiet_pair(bench)
    for timer_id in await bench.ids_of(one, 50):
        await bench.create(timer_id, 0.3, through=one)
    await bench.run(1)
    assert bench.hub.sent == []
    assert set(bench.latenesses_ms()) == {0}


@on_virtual_time
async def test_many_timers_for_another_node_make_one_signal_with_the_first_of_each_shard() -> None:
    bench = ClusterBench()
    one, two = await quiet_pair(bench)
    first = {}
    for number, timer_id in enumerate(await bench.ids_of(two, 500)):
        timer = await bench.create(timer_id, 2 - number / 1_000, through=one)
        first[timer.shard] = timer.due_at
    await bench.run(3)
    assert bench.hub.sent == [first]
    assert set(bench.latenesses_ms()) == {0}


@on_virtual_time
async def test_instants_announced_while_a_signal_is_sent_go_into_the_next() -> None:
    bench = ClusterBench()
    one, two = await quiet_pair(bench)
    bench.hub.send_seconds = 0.1
    for timer_id in await bench.ids_of(two, 200):
        await bench.create(timer_id, 1, through=one)
        await bench.run(0.002)
    await bench.run(2)
    assert len(bench.hub.sent) <= 6
    assert set(bench.latenesses_ms()) == {0}


@on_virtual_time
async def test_timers_that_the_owner_finds_in_time_by_itself_are_not_announced() -> None:
    bench = ClusterBench()
    one, two = await quiet_pair(bench)
    await bench.run(0.3)
    for number, timer_id in enumerate(await bench.ids_of(two, 50)):
        await bench.create(timer_id, POLL_SECONDS + 1.001 + number, through=one)
    await bench.run(70)
    assert bench.hub.sent == []
    assert await bench.count(TimerStatus.COMPLETED) == 50
    assert set(bench.latenesses_ms()) == {0}


@on_virtual_time
async def test_a_later_instant_than_the_announced_one_is_no_news() -> None:
    bench = ClusterBench()
    bench.hub.send_seconds = 0.05
    one, two = await bench.start("one", "two")
    await bench.run(1)
    bench.hub.sent.clear()
    shard = (await bench.shards_of(two))[0]
    now = bench.clock.now()
    for in_ms in (900, 300, 600):
        one.engine.announce(shard, plus_ms(now, in_ms))
    await bench.run(1)
    assert bench.hub.sent == [{shard: plus_ms(now, 300)}]


@on_virtual_time
async def test_a_signal_that_cannot_be_sent_is_dropped_and_the_next_one_is_sent() -> None:
    bench = ClusterBench()
    one, two = await quiet_pair(bench)
    await bench.run(0.1)
    lost_id, next_id = await bench.ids_of(two, 2)
    one.cut_off()
    await bench.create(lost_id, 0.2, through=one)
    await bench.run(0.5)
    one.mend()
    await bench.create(next_id, 1, through=one)
    await bench.run(POLL_SECONDS + 1)
    assert bench.latenesses_ms(next_id) == [0]
    assert await bench.count(TimerStatus.COMPLETED) == 2
