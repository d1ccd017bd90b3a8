"""Searches page through everything that matches, in both directions, and say where they stopped."""

from collections.abc import Sequence
from itertools import product

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.bulk import TimerFilter
from duetime.domain.callback import HttpCallback
from duetime.domain.errors import InvalidInput
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.searching import FoundTimer, OrderedQuery
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.service.searching import searching as module
from duetime.service.searching.cursors import cursor_text, parse_cursor
from duetime.service.searching.search import Cursor, FoundPage, Search, SearchOrder, Unshown
from duetime.service.searching.searching import MOST_LOOKED_AT, Searching
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock, make_timer
from duetime.testing.store_contract.steps import at, create

NAMES = ("a", "b", "c")


def searching(store: MemoryStore, sealer: Sealer | None = None) -> Searching:
    clock = VirtualClock()
    return Searching(store.searches, CallbackSealer(sealer or Sealer(())), clock, Turns(clock))


async def filled(count: int = 240) -> MemoryStore:
    """Timers of three namespaces, with the same ids and few instants. A tenth is canceled."""
    store = MemoryStore()
    for name in NAMES:
        await store.add_namespace(Namespace(name, 16))
    timers = [
        make_timer(
            f"t{n // 3:04}",
            namespace=NAMES[n % 3],
            execute_at=at(n * 7 % 11),
            created_at=at(n * 5 % 13),
            callback=HttpCallback(url=f"https://host{n % 4}.example.com/x"),
            metadata=Raw(b'{"n": %d}' % (n % 6)),
        )
        for n in range(count)
    ]
    await create(store, *timers)
    for timer in timers[::10]:
        await store.cancel_if_pending(timer.key, at(99))
    return store


def keys_of(page: FoundPage) -> list[TimerKey]:
    return [each.timer.key for each in page.listed]


async def everything(store: MemoryStore) -> list[Timer]:
    pages = [
        await store.searches.scan_in_order(
            OrderedQuery(namespace=name, sort=SearchOrder.CREATED_AT.sort, limit=10_000)
        )
        for name in NAMES
    ]
    return [found.timer for page in pages for found in page]


def in_order(timers: Sequence[Timer], search: Search) -> list[TimerKey]:
    def place(timer: Timer) -> tuple[object, object]:
        if search.order is SearchOrder.ID:
            return timer.key.id, timer.key.namespace
        return getattr(timer, search.order.value), timer.timer_uuid

    chosen = [timer for timer in timers if timer.key.namespace in search.namespaces]
    matching = [timer for timer in chosen if search.matches(timer)]
    return [timer.key for timer in sorted(matching, key=place, reverse=search.descending)]


FILTERS = [
    TimerFilter(),
    TimerFilter(id_prefix="t00"),
    TimerFilter(id_prefix="t000", due_from_inclusive=at(3)),
    TimerFilter(due_from_inclusive=at(2), due_until_exclusive=at(7)),
    TimerFilter(endpoint="host1.example.com"),
    TimerFilter(metadata_key="n", metadata_value="4"),
]


@pytest.mark.parametrize("names", [("b",), NAMES])
@pytest.mark.parametrize("matching", FILTERS)
async def test_pages_go_there_and_back_without_repeating_or_leaving_out(
    names: tuple[str, ...], matching: TimerFilter
) -> None:
    store = await filled()
    service, timers = searching(store), await everything(store)
    for order, descending, status in product(
        SearchOrder, (False, True), (None, TimerStatus.PENDING, TimerStatus.CANCELED)
    ):
        search = Search(
            namespaces=names,
            order=order,
            descending=descending,
            status=status,
            matching=matching,
            limit=20,
        )
        expected = in_order(timers, search)
        page = await service.page(search)
        assert page.previous is None
        there = keys_of(page)
        while page.next is not None:
            assert len(page.listed) == 20
            page = await service.page(replace(search, cursor=page.next))
            there += keys_of(page)
        assert there == expected, search
        back = keys_of(page)
        while page.previous is not None:
            page = await service.page(replace(search, cursor=page.previous))
            back = keys_of(page) + back
        assert back == expected, search


async def test_the_last_page_is_reached_from_the_end() -> None:
    store = await filled()
    search = Search(namespaces=NAMES, limit=20)
    last = await searching(store).page(replace(search, cursor=Cursor(None, is_before=True)))
    assert keys_of(last) == in_order(await everything(store), search)[-20:]
    assert last.next is None
    assert last.previous is not None


async def test_a_page_that_is_empty_by_now_leads_back() -> None:
    store = await filled(60)
    service, search = searching(store), Search(namespaces=("a",), limit=20)
    first = await service.page(search)
    assert first.next is None
    place = (first.listed[-1].timer.created_at, first.listed[-1].timer.timer_uuid)
    beyond = await service.page(replace(search, cursor=Cursor(place)))
    assert keys_of(beyond) == []
    assert beyond.previous is not None
    back = await service.page(replace(search, cursor=beyond.previous))
    assert keys_of(back) == keys_of(first)


async def test_a_search_without_an_index_stops_and_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_LOOKED_AT", 20)
    monkeypatch.setattr(module, "SCANNED_AT_ONCE", 10)
    store = await filled()
    service = searching(store)
    search = Search(namespaces=NAMES, matching=TimerFilter(metadata_key="n", metadata_value="5"))
    assert not search.is_indexed
    expected = in_order(await everything(store), search)
    found: list[TimerKey] = []
    page = await service.page(search)
    stops = 0
    while True:
        found += keys_of(page)
        if page.next is None:
            break
        assert page.stopped_at is not None
        assert 20 <= page.looked_at <= 40
        stops += 1
        page = await service.page(replace(search, cursor=page.next))
    assert found == expected
    assert stops > 5
    assert page.stopped_at is None


async def test_a_search_that_takes_too_long_stops() -> None:
    class SlowStore(MemoryStore):
        pass

    store = SlowStore()
    await store.add_namespace(Namespace("a", 16))
    await create(store, *(make_timer(f"t{n}", namespace="a") for n in range(900)))
    clock = VirtualClock()
    scan = store.searches.scan_in_order

    async def slow_scan(query: OrderedQuery) -> Sequence[FoundTimer]:
        clock.advance(0.11)
        return await scan(query)

    store.searches.scan_in_order = slow_scan  # type: ignore[method-assign]
    service = Searching(store.searches, CallbackSealer(Sealer(())), clock, Turns(clock))
    search = Search(namespaces=("a",), matching=TimerFilter(error_contains="nowhere"))
    page = await service.page(search)
    assert page.looked_at == 400 < MOST_LOOKED_AT
    assert page.stopped_at is not None


async def test_counts_stop_at_the_cap_and_are_unknown_without_an_index() -> None:
    store = await filled()
    service = searching(store)
    everything = await service.count(Search(namespaces=NAMES))
    assert everything is not None
    assert everything.timers == 240
    one = await service.count(Search(namespaces=("a",), matching=TimerFilter(id_prefix="t000")))
    assert one is not None
    assert one.timers == 10
    unknown = Search(namespaces=NAMES, matching=TimerFilter(error_contains="x"))
    assert await service.count(unknown) is None


async def test_a_walk_has_everything_once() -> None:
    store = await filled(1_500)
    search = Search(namespaces=NAMES, matching=TimerFilter(endpoint="host2.example.com"), limit=20)
    seen = [each.timer.key async for part in searching(store).walk(search) for each in part]
    assert seen == in_order(await everything(store), search)


async def test_sealed_timers_are_listed_as_such() -> None:
    store = MemoryStore()
    await store.add_namespace(Namespace("a", 16))
    mine, other = (Sealer([SealingKey(id, id.encode() * 32)]) for id in "mo")
    for number, sealer in enumerate((mine, other)):
        key = TimerKey("a", f"t{number}")
        callback = HttpCallback(url="https://x.example.com", payload=Raw(b'"secret"'))
        sealed = CallbackSealer(sealer).sealed(key, callback)
        await create(store, make_timer(key.id, namespace="a", callback=sealed))
    search = Search(namespaces=("a",), order=SearchOrder.ID, descending=False)
    first, second = (await searching(store, mine).page(search)).listed
    assert (first.unshown, first.timer.callback.payload) == (None, Raw(b'"secret"'))
    assert second.unshown is Unshown.SEALED


@pytest.mark.parametrize(
    ("search", "field"),
    [
        (Search(namespaces=tuple(f"n{n}" for n in range(21))), "namespace"),
        (Search(namespaces=("a",), limit=51), "limit"),
        (Search(namespaces=("a",), matching=TimerFilter(id_prefix="")), "id_prefix"),
        (Search(namespaces=("a",), matching=TimerFilter(id_prefix="x\0")), "id_prefix"),
        (
            Search(namespaces=("a",), matching=TimerFilter(error_contains="x" * 2_000)),
            "error",
        ),
        (Search(namespaces=("a",), matching=TimerFilter(endpoint="http://x/path")), "endpoint"),
        (Search(namespaces=("a",), matching=TimerFilter(metadata_key="x")), "metadata"),
        (
            Search(namespaces=("a",), matching=TimerFilter(metadata_key="", metadata_value="")),
            "metadata",
        ),
        (
            Search(
                namespaces=("a",),
                matching=TimerFilter(due_from_inclusive=at(2), due_until_exclusive=at(1)),
            ),
            "due_until",
        ),
    ],
)
async def test_a_wrong_search_is_refused_by_the_name_of_its_field(
    search: Search, field: str
) -> None:
    service = searching(await filled(3))
    with pytest.raises(InvalidInput) as refused:
        await service.page(search)
    assert refused.value.field == field
    with pytest.raises(InvalidInput):
        await service.count(search)
    with pytest.raises(InvalidInput):
        await anext(service.walk(search))


@pytest.mark.parametrize(
    ("order", "cursor"),
    [
        (SearchOrder.ID, Cursor(("é-1", "ns"), is_before=True)),
        (SearchOrder.CREATED_AT, Cursor((at(1), bytes(range(16))))),
        (SearchOrder.EXECUTE_AT, Cursor((at(-(10**9)), b"\xff" * 16), is_before=True)),
        (SearchOrder.EXECUTE_AT, Cursor(None, is_before=True)),
    ],
)
def test_cursors_are_read_back(order: SearchOrder, cursor: Cursor) -> None:
    text = cursor_text(cursor, order)
    assert parse_cursor(text, order) == cursor
    for other in SearchOrder:
        if other is not order:
            with pytest.raises(InvalidInput, match="another order"):
                parse_cursor(text, other)


@pytest.mark.parametrize("order", SearchOrder)
@pytest.mark.parametrize(
    "text",
    [
        "", "x", "é", "AAAA", "[]", "x" * 5_000,
        # ["id",false,"a\u0000","b"], ["execute_at",false,99999999999999999999,"AA=="] and more
        "WyJpZCIsZmFsc2UsImFcdTAwMDAiLCJiIl0",
        "WyJleGVjdXRlX2F0IixmYWxzZSw5OTk5OTk5OTk5OTk5OTk5OTk5OSwiQUE9PSJd",
        "WyJleGVjdXRlX2F0IixmYWxzZSwxLG51bGxd",
        "WyJpZCIsZmFsc2UsMSwiYiJd",
        "WyJjcmVhdGVkX2F0IixmYWxzZSwiYSIsImIiXQ",
    ],
)  # fmt: skip
def test_a_forged_cursor_is_refused(order: SearchOrder, text: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        parse_cursor(text, order)
