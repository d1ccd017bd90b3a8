"""Partitions of the history: made when needed, dropped when old."""

import asyncio
from dataclasses import replace

import pytest

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.testing.store_contract.steps import at, claim, completion, create, own_shards
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held

HOUR = 3_600 * MICROSECONDS_PER_SECOND


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return replace(new_options, history_partition_seconds=3_600.0)


def hour(number: float) -> Instant:
    """An instant this many hours after a whole hour."""
    return Instant(round(at(0) // HOUR * HOUR + number * HOUR))


async def finish_at(store: PostgresStore, *instants: Instant) -> None:
    for instant in instants:
        timer = make_timer(f"at-{instant}")
        await create(store, timer)
        await store.cancel_if_pending(timer.key, instant)


async def left(store: PostgresStore, *instants: Instant) -> list[Instant]:
    return [
        instant
        for instant in instants
        if await store.get(TimerKey("default", f"at-{instant}")) is not None
    ]


async def partitions(database: Connection) -> list[tuple[int, int]]:
    rows = await database.fetch(
        "SELECT from_inclusive, to_exclusive FROM history_partitions ORDER BY from_inclusive"
    )
    return [(start, end) for start, end in rows]


async def test_a_partition_is_made_when_a_timer_finishes_in_it(
    store: PostgresStore, database: Connection
) -> None:
    await finish_at(store, hour(0), hour(0.9), hour(7.5))
    assert await partitions(database) == [(hour(0), hour(1)), (hour(7), hour(8))]


async def test_a_batch_may_finish_in_several_partitions(
    store: PostgresStore, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(3)))
    claims = await claim(store, leases)
    settlements = [completion(claimed, answered_at=hour(2 * n)) for n, claimed in enumerate(claims)]
    assert await store.settle(settlements) == [True] * 3
    assert [start for start, _ in await partitions(database)] == [hour(0), hour(2), hour(4)]


async def test_instants_before_1970_have_partitions_too(
    store: PostgresStore, database: Connection
) -> None:
    await finish_at(store, Instant(-1))
    assert await partitions(database) == [(-HOUR, 0)]


async def test_partitions_of_another_width_fit_between_existing_ones(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await finish_at(store, hour(1.5))
    wider = PostgresStore(replace(options, history_partition_seconds=86_400.0))
    await wider.open()
    midnight = Instant(hour(0) // (24 * HOUR) * 24 * HOUR)
    assert midnight == hour(0)
    await finish_at(wider, hour(0.5), hour(1.7), hour(20))
    await wider.close()
    assert await partitions(database) == [
        (hour(0), hour(1)),
        (hour(1), hour(2)),
        (hour(2), hour(24)),
    ]
    assert (await store.counts())[TimerStatus.CANCELED] == 4


async def test_nodes_that_need_the_same_partition_at_once_make_it_once(
    options: PostgresOptions, store: PostgresStore, database: Connection
) -> None:
    stores = [PostgresStore(options) for _ in range(4)]
    for each in stores:
        await each.open()
    instants = [Instant(hour(3) + n) for n in range(len(stores))]
    await asyncio.gather(
        *(finish_at(each, instant) for each, instant in zip(stores, instants, strict=True))
    )
    for each in stores:
        await each.close()
    assert await left(store, *instants) == instants
    assert await partitions(database) == [(hour(3), hour(4))]


async def test_pruning_to_the_end_of_a_partition_drops_it(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    instants = [hour(n) for n in (0.1, 0.2, 0.3, 1.5, 2.5)]
    await finish_at(store, *instants)
    assert await store.prune(finished_before=hour(2), limit=1) == 4
    assert await left(store, *instants) == [hour(2.5)]
    assert await partitions(database) == [(hour(2), hour(3))]
    assert await store.prune(finished_before=hour(2), limit=1) == 0
    assert await findings(options) == []


async def test_pruning_single_timers_drops_old_partitions(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    instants = [hour(n) for n in (0.1, 1.5, 2.2, 2.5)]
    await finish_at(store, *instants)
    assert await store.prune(finished_before=hour(2.3), limit=2) == 2
    assert await store.prune(finished_before=hour(2.3), limit=2) == 1
    assert await left(store, *instants) == [hour(2.5)]
    assert await partitions(database) == [(hour(2), hour(3))]
    assert await findings(options) == []


async def test_pruning_a_namespace_leaves_the_partitions(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await store.add_namespace(Namespace("other", 16))
    other = make_timer("other", namespace="other")
    await create(store, other)
    await store.cancel_if_pending(other.key, hour(0.5))
    instants = [hour(n) for n in (0.1, 0.2, 1.5, 2.1, 2.9)]
    await finish_at(store, *instants)
    before = hour(2.5)
    assert await store.prune(finished_before=before, limit=3, namespace="default") == 3
    assert await store.prune(finished_before=before, limit=3, namespace="default") == 1
    assert await store.prune(finished_before=before, limit=3, namespace="default") == 0
    assert await left(store, *instants) == [hour(2.9)]
    assert await store.get(other.key) is not None
    assert [start for start, _ in await partitions(database)] == [hour(0), hour(1), hour(2)]
    assert await findings(options) == []


async def test_pruning_a_namespace_skips_timers_that_are_being_redriven(
    store: PostgresStore, options: PostgresOptions
) -> None:
    await finish_at(store, hour(0.1), hour(0.2))
    being_moved = f"DELETE FROM finished_timers WHERE id = 'at-{hour(0.1)}'"
    async with held(options, being_moved) as moving:
        assert await store.prune(finished_before=hour(1), limit=9, namespace="default") == 1
        await moving.roll_back()
    assert await left(store, hour(0.1), hour(0.2)) == [hour(0.1)]


async def test_a_partition_that_is_being_read_is_left_for_the_next_time(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await finish_at(store, hour(0.5))
    async with held(options, "SELECT FROM finished_timers"):
        assert await store.prune(finished_before=hour(1), limit=1) == 0
        assert await left(store, hour(0.5)) == [hour(0.5)]
    assert await store.prune(finished_before=hour(1), limit=1) == 1
    assert await findings(options) == []


async def findings(options: PostgresOptions) -> list[str]:
    inspector = PostgresInspector(options)
    await inspector.open()
    report = await inspector.audit(at(0))
    await inspector.close()
    return [finding.problem for finding in report.findings]
