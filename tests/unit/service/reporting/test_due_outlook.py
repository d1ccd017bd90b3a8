"""The outlook counts when somebody looks, once for all who look."""

import asyncio
from collections.abc import Collection, Sequence

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.ports.inspection import DueCount
from duetime.service.reporting.due_outlook import (
    FEWER_COUNTED,
    MOST_COUNTED,
    MOST_NAMESPACES,
    DueOutlook,
    Horizon,
)
from duetime.service.reporting.shared_readings import FRESH_SECONDS, LONGEST_REST_SECONDS
from duetime.testing import LoopClock, on_virtual_time


class CountingStore:
    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.took_seconds = 0.01
        self.gives_up_above: int | None = None
        self.is_away = False
        self.asked: list[tuple[int, int, Sequence[str] | None]] = []

    async def count_due(
        self, bounds: Sequence[Instant], *, most: int, namespaces: Collection[str] | None = None
    ) -> Sequence[DueCount] | None:
        names = None if namespaces is None else list(namespaces)
        self.asked.append((len(bounds) - 1, most, names))
        assert bounds[0] >= self._clock.now()
        await self._clock.sleep(self.took_seconds)
        if self.is_away:
            raise StoreUnavailable("away")
        if self.gives_up_above is not None and most > self.gives_up_above:
            return None
        return [DueCount(len(self.asked), is_all=True)] * (len(bounds) - 1)


class Watched:
    def __init__(self) -> None:
        self.clock = LoopClock()
        self.store = CountingStore(self.clock)
        self.outlook = DueOutlook(self.store, self.clock)

    async def first_bar(self, namespaces: frozenset[str] | None = None) -> int | None:
        outlook = await self.outlook.of(Horizon.HOUR, namespaces)
        return None if outlook is None else outlook.bars[0].timers


@on_virtual_time
async def test_many_who_look_cost_one_count() -> None:
    watched = Watched()
    assert await asyncio.gather(*(watched.first_bar() for _ in range(50))) == [1] * 50
    assert await watched.first_bar() == 1
    assert len(watched.store.asked) == 1
    await watched.clock.sleep(FRESH_SECONDS + 0.1)
    assert await watched.first_bar() == 2


@on_virtual_time
async def test_each_horizon_and_each_set_of_namespaces_is_counted_apart() -> None:
    watched = Watched()
    for horizon in Horizon:
        outlook = await watched.outlook.of(horizon)
        assert outlook is not None
        assert outlook.from_at % MICROSECONDS_PER_SECOND == 0
    await watched.first_bar(frozenset({"b", "a"}))
    assert watched.store.asked == [
        (60, MOST_COUNTED, None),
        (48, MOST_COUNTED, None),
        (84, MOST_COUNTED, None),
        (60, MOST_COUNTED, ["a", "b"]),
    ]


@on_virtual_time
async def test_a_page_does_not_wait_for_a_slow_store() -> None:
    watched = Watched()
    watched.store.took_seconds = 2.0
    began_seconds = watched.clock.monotonic()
    assert await watched.first_bar() is None
    assert watched.clock.monotonic() - began_seconds < 0.1
    await watched.clock.sleep(3)
    assert await watched.first_bar() == 1
    await watched.clock.sleep(LONGEST_REST_SECONDS - 5)
    assert await watched.first_bar() == 1, "the slower the count, the longer the rest"
    assert len(watched.store.asked) == 1


@on_virtual_time
async def test_a_store_that_takes_too_long_counts_fewer() -> None:
    watched = Watched()
    watched.store.gives_up_above = FEWER_COUNTED
    assert await watched.first_bar() == 2
    assert [most for _, most, _ in watched.store.asked] == [MOST_COUNTED, FEWER_COUNTED]


@on_virtual_time
async def test_while_the_store_is_away_the_last_counts_stay() -> None:
    watched = Watched()
    assert await watched.first_bar() == 1
    watched.store.is_away = True
    await watched.clock.sleep(FRESH_SECONDS + 0.1)
    assert await watched.first_bar() == 1
    assert len(watched.store.asked) == 2


@on_virtual_time
async def test_a_key_for_very_many_namespaces_is_told_what_was_left_out() -> None:
    watched = Watched()
    names = frozenset(f"n{number:03}" for number in range(MOST_NAMESPACES + 7))
    outlook = await watched.outlook.of(Horizon.HOUR, names)
    assert outlook is not None
    assert outlook.leaves_out == 7
