"""Lists that continue from a position, in either direction, whatever is written meanwhile."""

import asyncio
from itertools import product

import pytest
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import Position, ScanQuery
from duetime.testing.store_contract.pages_and_counts import filled
from duetime.testing.store_contract.steps import (
    FAR_FUTURE,
    Store,
    at,
    claim,
    completion,
    create,
    failure,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer

STATUSES = [None, *TimerStatus]
RANGES = [
    (None, None),
    (at(2), None),
    (None, at(5)),
    (at(2), at(5)),
    (at(3), at(3)),
    (at(5), at(2)),
    (Instant(at(2) + 1), Instant(at(5) + 1)),
    (at(-FAR_FUTURE), at(FAR_FUTURE)),
]
FIRST_UUID, LAST_UUID = bytes(16), b"\xff" * 16


def position_of(timer: Timer) -> Position:
    return Position(timer.execute_at, timer.timer_uuid)


def in_order(timers: list[Timer]) -> list[Timer]:
    return sorted(timers, key=lambda timer: (timer.execute_at, timer.timer_uuid))


def matching(timers: list[Timer], query: ScanQuery) -> list[Timer]:
    """The timers that the query matches after its position, without its limit."""
    first, end = query.execute_from_inclusive, query.execute_until_exclusive
    after = query.after_exclusive
    found = []
    for timer in in_order(timers):
        here = (timer.execute_at, timer.timer_uuid)
        if (
            timer.status in query.statuses
            and (first is None or timer.execute_at >= first)
            and (end is None or timer.execute_at < end)
        ):
            if after is not None:
                there = (after.execute_at, after.timer_uuid)
                if not (here < there if query.descending else here > there):
                    continue
            found.append(timer)
    return found[::-1] if query.descending else found


async def walked(store: Store, query: ScanQuery) -> list[Timer]:
    """Everything the query matches, read page by page."""
    seen: list[Timer] = []
    while timers := await store.scan(query):
        assert len(timers) <= query.limit
        seen += timers
        query = replace(query, after_exclusive=position_of(timers[-1]))
    return seen


@pytest.mark.asyncio
class ListsFromAPositionContract:
    async def test_live_timers_are_those_that_are_not_finished(self, store: Store) -> None:
        timers = await filled(store)
        live = {TimerStatus.PENDING, TimerStatus.EXECUTING}
        for (first, end), descending in product(RANGES, (False, True)):
            query = ScanQuery(
                namespace="default",
                live_only=True,
                execute_from_inclusive=first,
                execute_until_exclusive=end,
                descending=descending,
                limit=1_000,
            )
            expected = matching(timers, query)
            assert {timer.status for timer in expected} <= live
            assert await store.scan(query) == expected
            assert await walked(store, replace(query, limit=3)) == expected
            assert await store.count_scan(query) == len(expected)

    async def test_every_status_range_and_direction(self, store: Store) -> None:
        timers = await filled(store)
        assert {timer.status for timer in timers} == set(TimerStatus)
        assert any(timer.due_at > timer.execute_at for timer in timers)
        for status, (first, end), descending in product(STATUSES, RANGES, (False, True)):
            query = ScanQuery(
                namespace="default",
                status=status,
                execute_from_inclusive=first,
                execute_until_exclusive=end,
                descending=descending,
            )
            expected = matching(timers, query)
            assert await store.scan(query) == expected, query
            assert await store.scan(replace(query, limit=3)) == expected[:3], query
            assert await store.scan_entries(replace(query, limit=3)) == expected[:3], query
            assert await store.count_scan(query) == len(expected), query

    async def test_a_scan_starts_after_any_position(self, store: Store) -> None:
        """Positions of timers that match or do not, and of no timer, also outside the range."""
        timers = await filled(store)
        positions = [position_of(timer) for timer in in_order(timers)[::3]]
        positions += [Position(at(n), uuid) for n in (-9, 3, 9) for uuid in (FIRST_UUID, LAST_UUID)]
        for position, status, (first, end), descending in product(
            positions, (None, *STATUSES[1:4]), RANGES[:4], (False, True)
        ):
            query = ScanQuery(
                namespace="default",
                status=status,
                execute_from_inclusive=first,
                execute_until_exclusive=end,
                after_exclusive=position,
                descending=descending,
                limit=4,
            )
            assert await store.scan(query) == matching(timers, query)[:4], query

    async def test_consecutive_scans_have_every_timer_once(self, store: Store) -> None:
        timers = await filled(store)
        for status, limit, descending in product(STATUSES, (1, 7, 40, 1_000), (False, True)):
            query = ScanQuery(
                namespace="default", status=status, descending=descending, limit=limit
            )
            assert await walked(store, query) == matching(timers, query)

    async def test_timers_of_one_instant_are_in_the_order_of_their_uuids(
        self, store: Store
    ) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(5)) for n in range(30)]
        await create(store, *timers)
        expected = sorted(timers, key=lambda timer: timer.timer_uuid)
        query = ScanQuery(namespace="default", limit=7)
        assert await walked(store, query) == expected
        assert await walked(store, replace(query, descending=True)) == expected[::-1]
        instant = replace(
            query, execute_from_inclusive=at(5), execute_until_exclusive=Instant(at(5) + 1)
        )
        assert await walked(store, instant) == expected
        assert await store.count_scan(instant) == 30

    async def test_the_start_is_inclusive_and_the_end_exclusive_to_the_microsecond(
        self, store: Store
    ) -> None:
        instants = [Instant(at(5) + n) for n in range(-2, 3)]
        await create(store, *(make_timer(f"t{n}", execute_at=n) for n in instants))
        for descending in (False, True):
            query = ScanQuery(
                namespace="default",
                execute_from_inclusive=instants[1],
                execute_until_exclusive=instants[3],
                descending=descending,
            )
            found = sorted(timer.execute_at for timer in await store.scan(query))
            assert found == instants[1:3]
            assert await store.count_scan(query) == 2

    async def test_a_scan_beyond_the_end_is_empty(self, store: Store) -> None:
        timers = in_order([make_timer(f"t{n}", execute_at=at(n % 3)) for n in range(9)])
        await create(store, *timers)
        query = ScanQuery(namespace="default")
        last = replace(query, after_exclusive=position_of(timers[-1]))
        assert await store.scan(last) == []
        first = replace(query, after_exclusive=position_of(timers[0]), descending=True)
        assert await store.scan(first) == []
        far = replace(query, after_exclusive=Position(at(FAR_FUTURE), LAST_UUID))
        assert await store.scan(far) == []
        assert await store.scan(replace(far, descending=True)) == timers[::-1]
        before_all = replace(query, after_exclusive=Position(at(-FAR_FUTURE), FIRST_UUID))
        assert await store.scan(before_all) == timers

    async def test_a_scan_of_an_unknown_or_empty_namespace_is_empty(self, store: Store) -> None:
        for namespace, status in product(("default", "nowhere"), STATUSES):
            query = ScanQuery(namespace=namespace, status=status)
            assert await store.scan(query) == []
            assert await store.count_scan(query) == 0

    async def test_a_scan_has_timers_of_its_namespace_only(self, store: Store) -> None:
        names = ["a", "aa", "b"]
        for name in names:
            await store.add_namespace(Namespace(name, 16))
            await create(
                store,
                *(make_timer(f"t{n}", namespace=name, execute_at=at(n % 2)) for n in range(6)),
            )
        for name, descending in product(names, (False, True)):
            query = ScanQuery(namespace=name, limit=2, descending=descending)
            seen = await walked(store, query)
            assert len(seen) == len({timer.key for timer in seen}) == 6
            assert {timer.key.namespace for timer in seen} == {name}
            assert await store.count_scan(query) == 6

    async def test_a_count_ignores_the_position_and_the_limit(self, store: Store) -> None:
        timers = await filled(store)
        for status in STATUSES:
            query = ScanQuery(
                namespace="default",
                status=status,
                execute_from_inclusive=at(1),
                execute_until_exclusive=at(7),
            )
            expected = len(matching(timers, query))
            for place, descending in product((at(-1), at(3), at(99)), (False, True)):
                narrowed = replace(
                    query,
                    after_exclusive=Position(place, LAST_UUID),
                    descending=descending,
                    limit=1,
                )
                assert await store.count_scan(narrowed) == expected

    @pytest.mark.parametrize("descending", [False, True])
    async def test_writes_between_two_pages_shift_nothing(
        self, store: Store, descending: bool
    ) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(40)]
        await create(store, *timers)
        ordered = timers[::-1] if descending else timers
        query = ScanQuery(namespace="default", descending=descending, limit=10)
        seen = await store.scan(query)
        assert seen == ordered[:10]

        passed, place, ahead = ordered[2], ordered[9], ordered[20]
        await create(
            store,
            *(make_timer(f"new{n}", execute_at=passed.execute_at) for n in range(5)),
        )
        new_ahead = make_timer("new-ahead", execute_at=ahead.execute_at)
        await create(store, new_ahead)
        for gone in (ordered[0], place, ordered[30]):
            await store.remove_if_pending(gone.key)
        await store.cancel_if_pending(ordered[12].key, at(1))
        await store.change_if_pending(
            ordered[1].key,
            Change(updated_at=at(1), delivery_id="moved", execute_at=passed.execute_at),
        )
        claims = await claim(store, leases, limit=39)
        await store.settle([completion(claims[0]), completion(claims[-1]), failure(claims[-2])])

        rest = await walked(store, replace(query, after_exclusive=position_of(place)))
        expected = in_order([*ordered[10:30], *ordered[31:], new_ahead])
        assert [timer.key for timer in rest] == [
            timer.key for timer in (expected[::-1] if descending else expected)
        ]
        assert rest == [await stored(store, timer.key) for timer in rest]

    async def test_scans_beside_writers_have_every_settled_timer_once(self, store: Store) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n % 50)) for n in range(300)]
        await create(store, *timers)
        leases = await own_shards(store)

        async def write() -> None:
            for n in range(30):
                await create(
                    store, *(make_timer(f"new-{n}-{m}", execute_at=at(m)) for m in range(10))
                )
                claims = await claim(store, leases, limit=5)
                await store.settle([completion(claimed) for claimed in claims])

        walks = [
            walked(store, ScanQuery(namespace="default", limit=limit, descending=descending))
            for limit, descending in ((20, False), (20, True))
        ]
        *seen, _ = await asyncio.gather(*walks, write())
        before = {timer.key for timer in timers}
        for walk in seen:
            assert walk is not None
            keys = [timer.key for timer in walk]
            assert len(set(keys)) == len(keys)
            assert before <= set(keys)
