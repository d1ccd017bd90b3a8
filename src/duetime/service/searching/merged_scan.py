"""Timers of several namespaces, read from the store in one order."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from duetime.domain.timer import Timer
from duetime.ports.searching import (
    FoundTimer,
    IdPlace,
    IdQuery,
    InstantPlace,
    OrderedQuery,
    SearchStore,
)
from duetime.ports.store import SortField
from duetime.service.searching.search import Search, SearchOrder

PlaceT = TypeVar("PlaceT", bound=InstantPlace | IdPlace)


class Part(NamedTuple, Generic[PlaceT]):
    """Everything up to `looked_until` was looked at; None at the end."""

    found: Sequence[FoundTimer]
    looked_until: PlaceT | None


class Source(Protocol[PlaceT]):
    """The timers of each namespace, in one order."""

    def place_of(self, timer: Timer) -> PlaceT: ...

    async def read(
        self, namespace: str, after: PlaceT | None, limit: int, *, descending: bool
    ) -> Part[PlaceT]: ...


class InstantSource:
    """Timers by an instant. The store leaves out those of other statuses, and those outside of the
    window if the order is that of the window."""

    def __init__(self, store: SearchStore, search: Search) -> None:
        self._store = store
        self._search = search
        self._is_by_creation = search.order is SearchOrder.CREATED_AT

    def place_of(self, timer: Timer) -> InstantPlace:
        return timer.created_at if self._is_by_creation else timer.execute_at, timer.timer_uuid

    async def read(
        self, namespace: str, after: InstantPlace | None, limit: int, *, descending: bool
    ) -> Part[InstantPlace]:
        query = ordered_query(namespace, self._search, self._search.order.sort)
        found = await self._store.scan_in_order(
            replace(query, descending=descending, after_exclusive=after, limit=limit)
        )
        is_end = len(found) < limit
        return Part(found, None if is_end else self.place_of(found[-1].timer))


class IdSource:
    """Timers by their ids, of every status."""

    def __init__(self, store: SearchStore, search: Search) -> None:
        self._store = store
        self._prefix = search.matching.id_prefix or ""

    def place_of(self, timer: Timer) -> IdPlace:
        return timer.key.id, timer.key.namespace

    async def read(
        self, namespace: str, after: IdPlace | None, limit: int, *, descending: bool
    ) -> Part[IdPlace]:
        page = await self._store.scan_ids(
            IdQuery(
                namespace=namespace,
                prefix=self._prefix,
                descending=descending,
                after_exclusive=after,
                limit=limit,
            )
        )
        return Part(page.found, page.looked_until)


def ordered_query(namespace: str, search: Search, sort: SortField) -> OrderedQuery:
    """The part of the search that an index on instants serves."""
    is_by_window = sort is SortField.EXECUTE_AT
    matching = search.matching
    return OrderedQuery(
        namespace=namespace,
        sort=sort,
        status=search.status,
        execute_from_inclusive=matching.due_from_inclusive if is_by_window else None,
        execute_until_exclusive=matching.due_until_exclusive if is_by_window else None,
    )


class _Stream(Generic[PlaceT]):
    """The timers of one namespace that were read and not taken yet."""

    def __init__(self, namespace: str, looked_until: PlaceT | None) -> None:
        self.namespace = namespace
        self.looked_until = looked_until
        self.is_done = False
        self.found: deque[FoundTimer] = deque()


class MergedScan(Generic[PlaceT]):
    """Each part has the timers that come next, of all namespaces. A timer that keeps its place is
    neither repeated nor left out, whatever is written meanwhile."""

    def __init__(
        self,
        source: Source[PlaceT],
        namespaces: Sequence[str],
        after: PlaceT | None,
        *,
        descending: bool,
        limit: int,
    ) -> None:
        """`limit` is the number of timers of a namespace that are read at once."""
        self._source = source
        self._descending = descending
        self._limit = limit
        self._streams = [_Stream(name, after) for name in namespaces]

    async def next_part(self) -> Part[PlaceT]:
        await asyncio.gather(*map(self._fill, self._streams))
        unfinished = [
            stream.looked_until
            for stream in self._streams
            if not stream.is_done and stream.looked_until is not None
        ]
        until = None
        if unfinished:
            until = max(unfinished) if self._descending else min(unfinished)
        taken = [found for stream in self._streams for found in self._take(stream, until)]
        if len(self._streams) > 1:
            taken.sort(key=self._place_of, reverse=self._descending)
        return Part(taken, until)

    async def _fill(self, stream: _Stream[PlaceT]) -> None:
        if stream.found or stream.is_done:
            return
        part = await self._source.read(
            stream.namespace, stream.looked_until, self._limit, descending=self._descending
        )
        stream.found.extend(part.found)
        stream.looked_until = part.looked_until
        stream.is_done = part.looked_until is None

    def _take(self, stream: _Stream[PlaceT], until: PlaceT | None) -> list[FoundTimer]:
        taken = []
        while stream.found and self._is_within(stream.found[0], until):
            taken.append(stream.found.popleft())
        return taken

    def _is_within(self, found: FoundTimer, until: PlaceT | None) -> bool:
        if until is None:
            return True
        place = self._place_of(found)
        return place == (max(place, until) if self._descending else min(place, until))

    def _place_of(self, found: FoundTimer) -> PlaceT:
        return self._source.place_of(found.timer)
