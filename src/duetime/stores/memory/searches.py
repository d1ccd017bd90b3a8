"""Searches of the timers in memory. They read every timer of a namespace."""

from collections.abc import Iterator, Sequence
from heapq import nlargest, nsmallest

from duetime.domain.timer import Timer
from duetime.ports.searching import (
    CappedCount,
    FoundTimer,
    IdPage,
    IdPlace,
    IdQuery,
    InstantPlace,
    OrderedQuery,
)
from duetime.ports.store import SortField
from duetime.stores.memory.timer_table import TimerTable


class Searches:
    """Implements the port of searches."""

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers

    async def scan_in_order(self, query: OrderedQuery) -> Sequence[FoundTimer]:
        is_by_creation = query.sort is SortField.CREATED_AT

        def place(timer: Timer) -> InstantPlace:
            instant = timer.created_at if is_by_creation else timer.execute_at
            return instant, timer.timer_uuid

        first, end = query.bounds
        timers = (timer for timer in self._matching(query) if first < place(timer) < end)
        chosen = nlargest if query.descending else nsmallest
        return [FoundTimer(timer) for timer in chosen(query.limit, timers, key=place)]

    async def scan_ids(self, query: IdQuery) -> IdPage:
        first, end = query.bounds
        timers = (timer for timer in self._named(query) if first < _id_place(timer) < end)
        chosen = nlargest if query.descending else nsmallest
        found = chosen(query.limit, timers, key=_id_place)
        is_end = len(found) < query.limit
        return IdPage(list(map(FoundTimer, found)), None if is_end else _id_place(found[-1]))

    async def count_in_order(self, query: OrderedQuery, *, most: int) -> CappedCount:
        return CappedCount(sum(1 for _ in self._matching(query)))

    async def count_ids(self, query: IdQuery, *, most: int) -> CappedCount:
        return CappedCount(sum(1 for _ in self._named(query)))

    def _matching(self, query: OrderedQuery) -> Iterator[Timer]:
        first, end = query.execute_from_inclusive, query.execute_until_exclusive
        return (
            timer
            for timer in self._timers.of_namespace(query.namespace)
            if timer.status in query.statuses
            and (first is None or timer.execute_at >= first)
            and (end is None or timer.execute_at < end)
        )

    def _named(self, query: IdQuery) -> Iterator[Timer]:
        return (
            timer
            for timer in self._timers.of_namespace(query.namespace)
            if timer.key.id.startswith(query.prefix)
        )


def _id_place(timer: Timer) -> IdPlace:
    return timer.key.id, timer.key.namespace
