"""The timers that an operation is for: the scan that meets them, and their number."""

import asyncio
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.bulk import BulkAction, TimerFilter, status_to_change
from duetime.domain.errors import StoreUnavailable
from duetime.domain.timer import Timer
from duetime.ports.clock import Clock
from duetime.ports.store import Position, ScanQuery, TimerStore
from duetime.service.turns import Turns

BATCH_SIZE = 200

COUNTING_SECONDS = 5.0
"""Time that counting may take before an operation starts."""

STORE_COUNTING_SECONDS = 4.0
"""The part of that time in which the store counts a range of instants by itself."""


class Matched(Struct, frozen=True):
    """The number of timers that match; with `is_minimum` there may be more."""

    timers: int
    is_minimum: bool


def scan_of(namespace: str, action: BulkAction, matching: TimerFilter) -> ScanQuery:
    """The scan over all timers that an operation may have to change. Timers that are executing
    may become pending again, behind the position of the scan; to run them now is not needed."""
    has_one_status = action in (BulkAction.REDRIVE, BulkAction.RUN_NOW)
    return ScanQuery(
        namespace=namespace,
        status=status_to_change(action) if has_one_status else None,
        live_only=not has_one_status,
        execute_from_inclusive=matching.due_from_inclusive,
        execute_until_exclusive=matching.due_until_exclusive,
        limit=BATCH_SIZE,
    )


def following(query: ScanQuery, timers: list[Timer]) -> ScanQuery | None:
    """The scan that goes on after these timers of the query; None at the end."""
    if len(timers) < query.limit:
        return None
    position = Position(timers[-1].execute_at, timers[-1].timer_uuid)
    return replace(query, after_exclusive=position)


async def count_matching(
    store: TimerStore, clock: Clock, turns: Turns, query: ScanQuery, matching: TimerFilter
) -> Matched:
    """Count the timers of the query that match, for at most `COUNTING_SECONDS`."""
    until_seconds = clock.monotonic() + COUNTING_SECONDS
    if matching.is_range:
        # A store that is away, and not only slow, fails the scan below, too.
        with suppress(TimeoutError, StoreUnavailable):
            async with asyncio.timeout(STORE_COUNTING_SECONDS):
                return Matched(await store.count_scan(query), is_minimum=False)
    matched = 0
    rest: ScanQuery | None = query
    while rest is not None:
        timers = await store.scan(rest)
        matched += sum(await turns.map(matching.matches, timers))
        rest = following(rest, timers)
        if rest is not None and clock.monotonic() >= until_seconds:
            return Matched(matched, is_minimum=True)
    return Matched(matched, is_minimum=False)
