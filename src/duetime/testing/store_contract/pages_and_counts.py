"""Pages and counts: every filter, order and window against a plain sorted list, and counts that
are right after every kind of operation."""

from itertools import product

import pytest

from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import OnExisting, Page, PageQuery, SortField
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    failure,
    hand_back,
    own_shards,
    reschedule,
    stored,
)
from duetime.testing.timers import make_timer

WINDOWS = [(50, 0), (7, 0), (7, 7), (7, 35), (1, 3), (50, 39), (50, 40), (50, 1_000)]


async def filled(store: Store) -> list[Timer]:
    """Forty timers of every status with many equal instants, some of them deferred, and others in
    another namespace."""
    leases = await own_shards(store)
    timers = [
        make_timer(f"t{n}", execute_at=at(n * 3 % 8), created_at=at(n * 5 % 6)) for n in range(40)
    ]
    await create(store, *timers[:32])
    claims = await claim(store, leases, limit=24)
    await store.settle([completion(claim) for claim in claims[:8]])
    await store.settle([failure(claim) for claim in claims[8:16]])
    await store.settle([hand_back(claim, due_at=at(20)) for claim in claims[16:20]])
    await create(store, *timers[32:])
    for timer in timers[32:36]:
        await store.cancel_if_pending(timer.key, at(9))
    await store.add_namespace(Namespace("other", 16))
    await create(store, *(make_timer(f"t{n}", namespace="other") for n in range(9)))
    return [await stored(store, timer.key) for timer in timers]


def expected_page(timers: list[Timer], query: PageQuery) -> Page:
    matching = [t for t in timers if query.status is None or t.status is query.status]
    ordered = sorted(
        matching,
        key=lambda t: (getattr(t, query.sort.value), t.timer_uuid),
        reverse=query.descending,
    )
    return Page(ordered[query.offset :][: query.limit], len(matching))


@pytest.mark.asyncio
class PagesContract:
    async def test_every_filter_order_and_window(self, store: Store) -> None:
        timers = await filled(store)
        assert {timer.status for timer in timers} == set(TimerStatus)
        for status, sort, descending, (limit, offset) in product(
            (None, *TimerStatus), SortField, (True, False), WINDOWS
        ):
            query = PageQuery(
                namespace="default",
                status=status,
                sort=sort,
                descending=descending,
                limit=limit,
                offset=offset,
            )
            assert await store.page(query) == expected_page(timers, query), query

    async def test_consecutive_pages_have_every_timer_once(self, store: Store) -> None:
        timers = await filled(store)
        seen: list[Timer] = []
        for offset in range(0, 44, 4):
            page = await store.page(PageQuery(namespace="default", limit=4, offset=offset))
            assert page.total == len(timers)
            seen += page.timers
        assert sorted(t.key for t in seen) == sorted(t.key for t in timers)

    async def test_an_unknown_or_empty_namespace_is_an_empty_page(self, store: Store) -> None:
        for namespace in ("default", "nowhere"):
            assert await store.page(PageQuery(namespace=namespace)) == Page([], 0)

    async def test_a_page_has_the_newest_fifty_by_default(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", created_at=at(n)) for n in range(60)]
        await create(store, *timers)
        page = await store.page(PageQuery(namespace="default"))
        assert page == Page(timers[:9:-1], 60)


def tally(
    pending: int = 0, executing: int = 0, completed: int = 0, failed: int = 0, canceled: int = 0
) -> dict[TimerStatus, int]:
    return {
        TimerStatus.PENDING: pending,
        TimerStatus.EXECUTING: executing,
        TimerStatus.COMPLETED: completed,
        TimerStatus.FAILED: failed,
        TimerStatus.CANCELED: canceled,
    }


@pytest.mark.asyncio
class CountingContract:
    async def test_every_status_is_counted_even_at_zero(self, store: Store) -> None:
        assert await store.counts() == tally()
        assert await store.counts("default") == tally()
        assert await store.counts("nowhere") == tally()
        assert await store.count_unfinished("nowhere", exact_up_to=5) == 0

    async def test_counts_are_right_after_each_kind_of_write(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(8)]
        await create(store, *timers, timers[0])
        assert await store.counts("default") == tally(pending=8)
        await create(store, timers[0], on_existing=OnExisting.REPLACE)
        assert await store.counts("default") == tally(pending=8)
        await store.change_if_pending(
            timers[1].key, Change(updated_at=at(1), delivery_id="d", execute_at=at(1))
        )
        assert await store.counts("default") == tally(pending=8)
        await store.cancel_if_pending(timers[7].key, at(1))
        await store.cancel_if_pending(timers[7].key, at(1))
        assert await store.counts("default") == tally(pending=7, canceled=1)
        await store.remove_if_pending(timers[6].key)
        assert await store.counts("default") == tally(pending=6, canceled=1)
        claims = await claim(store, leases, limit=5)
        assert await store.counts("default") == tally(pending=1, executing=5, canceled=1)
        await store.settle([completion(claims[0]), failure(claims[1]), completion(claims[0])])
        assert await store.counts("default") == tally(1, 3, 1, 1, 1)
        await store.settle([hand_back(claims[2]), reschedule(claims[3], at(9))])
        assert await store.counts("default") == tally(3, 1, 1, 1, 1)
        await store.recover(await own_shards(store))
        assert await store.counts("default") == tally(4, 0, 1, 1, 1)
        assert await store.prune(finished_before=at(99), limit=2) == 2
        counts = await store.counts("default")
        assert counts[TimerStatus.PENDING] == 4
        assert sum(counts.values()) == 5

    async def test_a_retry_counts_as_pending(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer(retry_policy=RetryPolicy()))
        (claimed,) = await claim(store, leases)
        await store.settle([failure(claimed)])
        assert await store.counts() == tally(pending=1)

    async def test_namespaces_are_counted_apart_and_together(self, store: Store) -> None:
        await store.add_namespace(Namespace("other", 4))
        leases = await own_shards(store)
        await create(store, make_timer("a", namespace="other", num_shards=4, execute_at=at(-1)))
        await create(store, make_timer("a"), make_timer("b"))
        (claimed,) = await claim(store, leases, until_inclusive=at(-1))
        assert await store.counts("other") == tally(executing=1)
        assert await store.counts("default") == tally(pending=2)
        assert await store.counts() == tally(pending=2, executing=1)
        for namespace, unfinished in (("other", 1), ("default", 2)):
            assert await store.count_unfinished(namespace, exact_up_to=9) == unfinished
            assert await store.count_unfinished(namespace, exact_up_to=0) > 0
        await store.settle([completion(claimed)])
        assert await store.counts("other") == tally(completed=1)
        assert await store.count_unfinished("other", exact_up_to=0) == 0
        assert await store.counts() == tally(pending=2, completed=1)
