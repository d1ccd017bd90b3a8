"""Searches timers: page by page, by their number, or all of them one after the other."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Generic, cast

from msgspec.structs import replace

from duetime.domain.errors import CannotUnseal
from duetime.ports.clock import Clock
from duetime.ports.searching import CappedCount, FoundTimer, IdQuery, SearchStore
from duetime.ports.store import SortField
from duetime.sealing.callbacks import CallbackSealer
from duetime.service.searching.checking import check_search
from duetime.service.searching.merged_scan import (
    IdSource,
    InstantSource,
    MergedScan,
    PlaceT,
    Source,
    ordered_query,
)
from duetime.service.searching.search import (
    Cursor,
    FoundPage,
    ListedTimer,
    Search,
    SearchOrder,
    Unshown,
)
from duetime.service.turns import Turns

MOST_COUNTED = 10_000
"""Timers after which a count stops."""

MOST_LOOKED_AT = 5_000
"""Timers that a search without an index looks at for one page."""

LOOKING_SECONDS = 0.2
"""Time that such a search takes for one page, and the scan under way at its end."""

SCANNED_AT_ONCE = 200
"""Timers of a namespace that are read at once by such a search, and by a walk."""


class Searching:
    """The caller has made sure that the namespaces of a search are those that may be seen.

    Every method raises `InvalidInput` that names the field, and `StoreUnavailable`.
    """

    def __init__(
        self, store: SearchStore, callbacks: CallbackSealer, clock: Clock, turns: Turns
    ) -> None:
        self._store = store
        self._callbacks = callbacks
        self._clock = clock
        self._turns = turns

    async def page(self, search: Search) -> FoundPage:
        """The page at the cursor. Pages that follow each other by their cursors, in either
        direction, neither repeat nor leave out a timer that keeps its place."""
        check_search(search)
        if search.order is SearchOrder.ID:
            return await self._page(search, IdSource(self._store, search))
        return await self._page(search, InstantSource(self._store, search))

    async def count(self, search: Search) -> CappedCount | None:
        """The number of timers that match, up to `MOST_COUNTED`. None if no index tells."""
        check_search(search)
        matching = search.matching
        if matching.reads_contents:
            return None
        if matching.id_prefix is None:
            counts = [
                self._store.count_in_order(
                    ordered_query(name, search, SortField.EXECUTE_AT), most=MOST_COUNTED
                )
                for name in search.namespaces
            ]
        elif search.status is None and not search.has_window:
            counts = [
                self._store.count_ids(
                    IdQuery(namespace=name, prefix=matching.id_prefix), most=MOST_COUNTED
                )
                for name in search.namespaces
            ]
        else:
            return None
        counted = await asyncio.gather(*counts)
        total = sum(each.timers for each in counted)
        return CappedCount(total, any(each.is_minimum for each in counted))

    async def walk(self, search: Search) -> AsyncIterator[Sequence[ListedTimer]]:
        """All timers that match, in the order of the search, a part at a time, whatever its limit
        and cursor. Nothing is kept but the part, however many timers there are. A part may be
        empty."""
        check_search(search)
        if search.order is SearchOrder.ID:
            parts = self._walk(search, IdSource(self._store, search))
        else:
            parts = self._walk(search, InstantSource(self._store, search))
        async for part in parts:
            yield part

    async def _walk(
        self, search: Search, source: Source[PlaceT]
    ) -> AsyncIterator[Sequence[ListedTimer]]:
        scan = MergedScan(
            source,
            search.namespaces,
            None,
            descending=search.descending,
            limit=SCANNED_AT_ONCE,
        )
        is_end = False
        while not is_end:
            part = await scan.next_part()
            yield await self._listed(await self._matching(search, part.found))
            is_end = part.looked_until is None

    async def _page(self, search: Search, source: Source[PlaceT]) -> FoundPage:
        cursor = search.cursor or Cursor(None)
        read = await self._read(search, source, cursor)
        onwards, back = _beside(cursor, source, read)
        return FoundPage(
            listed=await self._listed(read.matching[::-1] if cursor.is_before else read.matching),
            next=back if cursor.is_before else onwards,
            previous=onwards if cursor.is_before else back,
            looked_at=read.looked_at,
            stopped_at=read.stopped_at,
            unreadable=read.unreadable,
        )

    async def _read(
        self, search: Search, source: Source[PlaceT], cursor: Cursor
    ) -> "_Read[PlaceT]":
        scan = MergedScan(
            source,
            search.namespaces,
            cast("PlaceT | None", cursor.place),
            descending=search.descending != cursor.is_before,
            # One more timer tells whether there is another page.
            limit=search.limit + 1 if search.is_indexed else SCANNED_AT_ONCE,
        )
        until_seconds = self._clock.monotonic() + LOOKING_SECONDS
        read: _Read[PlaceT] = _Read()
        while True:
            part = await scan.next_part()
            matching = await self._matching(search, part.found)
            read.matching += matching
            read.looked_at += len(part.found)
            if search.matching.reads_contents:
                read.unreadable += _unreadable(part.found) - _unreadable(matching)
            if len(read.matching) > search.limit:
                del read.matching[search.limit :]
                read.has_more = True
                return read
            if part.looked_until is None:
                return read
            is_over = self._clock.monotonic() >= until_seconds
            if is_over or read.looked_at >= MOST_LOOKED_AT:
                read.stopped_at = part.looked_until
                return read

    async def _matching(self, search: Search, found: Sequence[FoundTimer]) -> list[FoundTimer]:
        if search.is_indexed:
            return list(found)
        matches = await self._turns.map(lambda each: search.matches(each.timer), found)
        return [each for each, is_match in zip(found, matches, strict=True) if is_match]

    async def _listed(self, found: Sequence[FoundTimer]) -> list[ListedTimer]:
        return await self._turns.map(self._with_contents, found)

    def _with_contents(self, found: FoundTimer) -> ListedTimer:
        timer = found.timer
        if not found.is_readable:
            return ListedTimer(timer, Unshown.UNREADABLE)
        if timer.callback.sealed is None:
            return ListedTimer(timer)
        try:
            callback = self._callbacks.unsealed(timer.key, timer.callback)
        except CannotUnseal:
            return ListedTimer(timer, Unshown.SEALED)
        return ListedTimer(replace(timer, callback=callback))


class _Read(Generic[PlaceT]):
    """The timers that match, in the direction of the scan, and how far the scan got: to its end if
    there are no more, and it did not stop."""

    def __init__(self) -> None:
        self.matching: list[FoundTimer] = []
        self.has_more = False
        self.stopped_at: PlaceT | None = None
        self.looked_at = 0
        self.unreadable = 0


def _beside(
    cursor: Cursor, source: Source[PlaceT], read: _Read[PlaceT]
) -> tuple[Cursor | None, Cursor | None]:
    """The cursors on which the scan goes on, and goes back; None where there is nothing."""
    first = last = read.stopped_at
    if read.matching:
        first = source.place_of(read.matching[0].timer)
        last = source.place_of(read.matching[-1].timer)
    onwards = back = None
    if read.has_more or read.stopped_at is not None:
        onwards = Cursor(last if read.has_more else read.stopped_at, cursor.is_before)
    if cursor.place is not None:
        # Where nothing matches until the end, the other way begins at that end.
        back = Cursor(first, not cursor.is_before)
    return onwards, back


def _unreadable(found: Sequence[FoundTimer]) -> int:
    return sum(not each.is_readable for each in found)
