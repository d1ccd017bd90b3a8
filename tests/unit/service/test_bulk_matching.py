"""Counting before a bulk operation starts takes a bounded time, however many timers there are."""

import asyncio

import pytest

from duetime.domain.bulk import BulkAction, TimerFilter
from duetime.domain.errors import StoreUnavailable
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer
from duetime.ports.store import CreateRequest, OnExisting, ScanQuery
from duetime.service.bulk.matching import (
    BATCH_SIZE,
    COUNTING_SECONDS,
    Matched,
    count_matching,
    scan_of,
)
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import LoopClock, make_timer, on_virtual_time

TIMERS = 10 * BATCH_SIZE
ALL = TimerFilter()
BY_ID = TimerFilter(id_prefix="t")


class SlowStore(MemoryStore):
    """A store that takes its time to scan, and may fail or never end to count."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = LoopClock()
        self.scan_seconds = 0.0
        self.count_hangs = False
        self.failure: Exception | None = None
        self.scan_failure: Exception | None = None

    async def scan(self, query: ScanQuery) -> list[Timer]:
        await self.clock.sleep(self.scan_seconds)
        if self.scan_failure is not None:
            raise self.scan_failure
        return await super().scan(query)

    async def count_scan(self, query: ScanQuery) -> int:
        if self.count_hangs:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
        return await super().count_scan(query)


async def filled() -> SlowStore:
    store = SlowStore()
    await store.add_namespace(Namespace("default"))
    timers = [make_timer(f"t{number}") for number in range(TIMERS)]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])
    return store


async def counted(store: SlowStore, matching: TimerFilter) -> Matched:
    query = scan_of("default", BulkAction.CANCEL, matching)
    return await count_matching(store, store.clock, Turns(store.clock), query, matching)


@on_virtual_time
async def test_a_quick_count_is_exact() -> None:
    store = await filled()
    store.scan_seconds = 0.4
    for matching in (ALL, BY_ID):
        began_seconds = store.clock.monotonic()
        assert await counted(store, matching) == Matched(TIMERS, is_minimum=False)
        assert store.clock.monotonic() - began_seconds < COUNTING_SECONDS


@on_virtual_time
async def test_counting_by_reading_is_cut_short() -> None:
    store = await filled()
    store.scan_seconds = 2
    began_seconds = store.clock.monotonic()
    assert await counted(store, BY_ID) == Matched(3 * BATCH_SIZE, is_minimum=True)
    assert store.clock.monotonic() - began_seconds == pytest.approx(6)


@on_virtual_time
async def test_a_range_that_the_store_cannot_count_in_time_is_a_minimum() -> None:
    store = await filled()
    store.scan_seconds = 0.6
    store.count_hangs = True
    began_seconds = store.clock.monotonic()
    assert await counted(store, ALL) == Matched(2 * BATCH_SIZE, is_minimum=True)
    assert store.clock.monotonic() - began_seconds == pytest.approx(5.2)


@on_virtual_time
async def test_a_count_that_the_database_cuts_off_is_a_minimum_too() -> None:
    store = await filled()
    store.scan_seconds = 3
    store.failure = StoreUnavailable("canceling statement due to statement timeout")
    assert await counted(store, ALL) == Matched(2 * BATCH_SIZE, is_minimum=True)


@on_virtual_time
async def test_a_store_that_is_away_counts_nothing() -> None:
    store = await filled()
    store.failure = store.scan_failure = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await counted(store, ALL)
