"""Searches: every order, status, range and direction against a plain sorted list."""

from itertools import product

import pytest
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.searching import IdPlace, IdQuery, InstantPlace, OrderedQuery
from duetime.ports.store import SortField
from duetime.testing.store_contract.lists_from_a_position import RANGES
from duetime.testing.store_contract.pages_and_counts import filled
from duetime.testing.store_contract.steps import Store, at, create
from duetime.testing.timers import make_timer

STATUSES = [None, *TimerStatus]
ORDERS = [
    (SortField.CREATED_AT, (None, None)),
    *((SortField.EXECUTE_AT, bounds) for bounds in RANGES),
]
HARD_IDS = ["a", "ab", "ab-1", "ab-2", "ab%", "ab_", "aB", "abé", "ab\U0010ffff", "ac", "b", "é"]
"""Ids with characters that mean something in patterns, and that sort differently by language."""


def place_of(timer: Timer, sort: SortField) -> InstantPlace:
    is_by_creation = sort is SortField.CREATED_AT
    return timer.created_at if is_by_creation else timer.execute_at, timer.timer_uuid


def id_place(timer: Timer) -> IdPlace:
    return timer.key.id, timer.key.namespace


def in_query(timers: list[Timer], query: OrderedQuery) -> list[Timer]:
    """The timers that the query matches, in its order, whatever its place and limit."""
    first, end = query.execute_from_inclusive, query.execute_until_exclusive
    found = [
        timer
        for timer in timers
        if query.status in (None, timer.status)
        and (first is None or timer.execute_at >= first)
        and (end is None or timer.execute_at < end)
    ]
    return sorted(found, key=lambda t: place_of(t, query.sort), reverse=query.descending)


async def walked(store: Store, query: OrderedQuery) -> list[Timer]:
    """Everything the query matches, read page by page."""
    seen: list[Timer] = []
    while found := await store.searches.scan_in_order(query):
        assert len(found) <= query.limit
        assert all(each.is_readable for each in found)
        seen += [each.timer for each in found]
        query = replace(query, after_exclusive=place_of(seen[-1], query.sort))
    return seen


async def walked_ids(store: Store, query: IdQuery) -> list[Timer]:
    seen: list[Timer] = []
    while True:
        page = await store.searches.scan_ids(query)
        assert len(page.found) <= query.limit
        seen += [each.timer for each in page.found]
        if page.looked_until is None:
            return seen
        query = replace(query, after_exclusive=page.looked_until)


@pytest.mark.asyncio
class SearchingContract:
    async def test_every_order_status_range_and_direction_is_searched(self, store: Store) -> None:
        timers = await filled(store)
        for (sort, (first, end)), status, descending in product(ORDERS, STATUSES, (False, True)):
            query = OrderedQuery(
                namespace="default",
                sort=sort,
                status=status,
                descending=descending,
                execute_from_inclusive=first,
                execute_until_exclusive=end,
                limit=7,
            )
            expected = in_query(timers, query)
            assert await walked(store, query) == expected, query
            counted = await store.searches.count_in_order(query, most=1_000)
            assert (counted.timers, counted.is_minimum) == (len(expected), False), query

    async def test_a_search_goes_back_from_where_it_went(self, store: Store) -> None:
        timers = await filled(store)
        for sort, status, descending in product(SortField, STATUSES[:4], (False, True)):
            query = OrderedQuery(
                namespace="default", sort=sort, status=status, descending=descending, limit=1_000
            )
            expected = in_query(timers, query)
            for index in range(0, len(expected), 5):
                back = replace(
                    query,
                    descending=not descending,
                    after_exclusive=place_of(expected[index], sort),
                )
                found = [each.timer for each in await store.searches.scan_in_order(back)]
                assert found[::-1] == expected[:index]

    async def test_a_search_of_an_unknown_namespace_is_empty(self, store: Store) -> None:
        await create(store, make_timer("t"))
        for name in ("nowhere", "no\0where", ""):
            for sort in SortField:
                query = OrderedQuery(namespace=name, sort=sort)
                assert await store.searches.scan_in_order(query) == []
                assert (await store.searches.count_in_order(query, most=9)).timers == 0
            page = await store.searches.scan_ids(IdQuery(namespace=name))
            assert (list(page.found), page.looked_until) == ([], None)
            assert (await store.searches.count_ids(IdQuery(namespace=name), most=9)).timers == 0

    async def test_a_count_may_stop_at_its_cap_and_says_so(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(30)]
        await create(store, *timers)
        for status, most in product((None, TimerStatus.PENDING), (9, 19, 20, 21)):
            query = OrderedQuery(
                namespace="default",
                sort=SortField.EXECUTE_AT,
                status=status,
                execute_from_inclusive=at(10),
            )
            counted = await store.searches.count_in_order(query, most=most)
            if counted.is_minimum:
                assert most <= counted.timers < 20
            else:
                assert counted.timers == 20
            named = await store.searches.count_ids(IdQuery(namespace="default"), most=most)
            assert named.timers == 30 or (named.is_minimum and named.timers == most)

    async def test_ids_are_found_by_their_prefix(self, store: Store) -> None:
        timers = [make_timer(id, execute_at=at(index)) for index, id in enumerate(HARD_IDS)]
        await create(store, *timers)
        await store.cancel_if_pending(timers[3].key, at(1))
        stored = [await store.get(timer.key) for timer in timers]
        known = sorted((each for each in stored if each is not None), key=id_place)
        prefixes = ["", "a", "ab", "ab-", "ab%", "ab_", "\U0010ffff", "zz", "A", "é", "ab\0"]
        for prefix, limit, descending in product(prefixes, (1, 5, 100), (False, True)):
            query = IdQuery(namespace="default", prefix=prefix, limit=limit, descending=descending)
            expected = [timer for timer in known if timer.key.id.startswith(prefix)]
            seen = await walked_ids(store, query)
            assert seen == (expected[::-1] if descending else expected), query
            assert (await store.searches.count_ids(query, most=99)).timers == len(expected)

    async def test_ids_of_every_status_are_found_once(self, store: Store) -> None:
        timers = sorted(await filled(store), key=id_place)
        assert {timer.status for timer in timers} == set(TimerStatus)
        for limit, descending in product((1, 7, 1_000), (False, True)):
            query = IdQuery(namespace="default", prefix="t", limit=limit, descending=descending)
            assert await walked_ids(store, query) == (timers[::-1] if descending else timers)

    async def test_the_same_id_of_several_namespaces_is_placed_by_the_namespace(
        self, store: Store
    ) -> None:
        names = ["a", "b", "c"]
        for name in names:
            await store.add_namespace(Namespace(name, 16))
            await create(store, make_timer("same", namespace=name))
        for name, descending in product(names, (False, True)):
            query = IdQuery(
                namespace=name, prefix="s", descending=descending, after_exclusive=("same", "b")
            )
            is_after = name < "b" if descending else name > "b"
            page = await store.searches.scan_ids(query)
            assert len(page.found) == is_after
            assert all(each.timer.key.namespace == name for each in page.found)

    async def test_ids_are_found_between_those_of_other_namespaces(self, store: Store) -> None:
        """A store may look at a part of them at a time."""
        for name in ("crowd", "few"):
            await store.add_namespace(Namespace(name, 16))
        crowd = [make_timer(f"t{n:04}", namespace="crowd") for n in range(5_000)]
        few = [make_timer(f"t{n:04}", namespace="few") for n in range(0, 5_000, 999)]
        await create(store, *crowd, *few)
        for limit, descending in product((2, 50), (False, True)):
            query = IdQuery(namespace="few", prefix="t", limit=limit, descending=descending)
            assert await walked_ids(store, query) == (few[::-1] if descending else few)
        counted = await store.searches.count_ids(IdQuery(namespace="few"), most=1_000)
        assert counted.is_minimum or counted.timers == len(few)

    async def test_extreme_places_are_no_errors(self, store: Store) -> None:
        await create(store, make_timer("t"))
        places = [
            (Instant(at_instant), uuid)
            for at_instant in (-(2**63), 2**63 - 1)
            for uuid in (b"", b"\xff" * 17)
        ]
        for place, sort, descending in product(places, SortField, (False, True)):
            query = OrderedQuery(
                namespace="default", sort=sort, descending=descending, after_exclusive=place
            )
            assert len(await store.searches.scan_in_order(query)) == (descending == (place[0] > 0))
