"""Paging: every combination of filter, order and window against a plain sorted list."""

import pytest

from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import Page, PageQuery, SortField
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    failure,
    hand_back,
    own_shards,
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
class PagingContract:
    @pytest.mark.parametrize("sort", list(SortField))
    @pytest.mark.parametrize("descending", [True, False])
    async def test_every_filter_and_window(
        self, store: Store, sort: SortField, descending: bool
    ) -> None:
        timers = await filled(store)
        assert {timer.status for timer in timers} == set(TimerStatus)
        for status in (None, *TimerStatus):
            for limit, offset in WINDOWS:
                query = PageQuery(
                    namespace="default",
                    status=status,
                    sort=sort,
                    descending=descending,
                    limit=limit,
                    offset=offset,
                )
                assert await store.page(query) == expected_page(timers, query), query

    async def test_pages_joined_are_the_whole_list_once(self, store: Store) -> None:
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

    async def test_the_default_is_the_newest_fifty(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", created_at=at(n)) for n in range(60)]
        await create(store, *timers)
        page = await store.page(PageQuery(namespace="default"))
        assert page == Page(timers[:9:-1], 60)
