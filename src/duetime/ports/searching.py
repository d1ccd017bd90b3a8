"""The part of a store that serves people who search: lists in several orders, and capped counts."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import SortField

InstantPlace = tuple[Instant, bytes]
"""A place in the order of (created_at or execute_at, timer_uuid)."""

IdPlace = tuple[str, str]
"""A place in the order of (id, namespace), both by code point. No timer needs to be there."""

_Place = TypeVar("_Place", InstantPlace, IdPlace)

_BEFORE_EVERY_INSTANT = (Instant(-(2**63)), b"")
_AFTER_EVERY_INSTANT = (Instant(2**63 - 1), b"\xff" * 17)
_AFTER_EVERY_ID = "\U0010ffff" * 256


class FoundTimer(Struct, frozen=True):
    """A timer as the store keeps it: sealed contents stay sealed. Where it is not readable by this
    release, its callback has an empty URL, and retry policy, metadata and attempts are left out."""

    timer: Timer
    is_readable: bool = True


class OrderedQuery(Struct, frozen=True, kw_only=True):
    """Timers of one namespace in the order of (sort field, timer_uuid), or wholly reversed, after
    `after_exclusive` in the direction of the scan. None stands for every status.

    The range of `execute_at` is for the order of `execute_at` only.
    """

    namespace: str
    sort: SortField
    status: TimerStatus | None = None
    descending: bool = False
    execute_from_inclusive: Instant | None = None
    execute_until_exclusive: Instant | None = None
    after_exclusive: InstantPlace | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        has_range = (self.execute_from_inclusive, self.execute_until_exclusive) != (None, None)
        assert not has_range or self.sort is SortField.EXECUTE_AT

    @property
    def statuses(self) -> tuple[TimerStatus, ...]:
        return tuple(TimerStatus) if self.status is None else (self.status,)

    @property
    def range(self) -> tuple[InstantPlace, InstantPlace]:
        """The places around all timers of the range, both exclusive: an empty uuid is before every
        timer of its instant."""
        since, until = self.execute_from_inclusive, self.execute_until_exclusive
        return (
            _BEFORE_EVERY_INSTANT if since is None else (since, b""),
            _AFTER_EVERY_INSTANT if until is None else (until, b""),
        )

    @property
    def bounds(self) -> tuple[InstantPlace, InstantPlace]:
        """The places between which the timers are that come after the query's place."""
        return _narrowed(*self.range, self.after_exclusive, descending=self.descending)


class IdQuery(Struct, frozen=True, kw_only=True):
    """Timers of one namespace whose ids begin with the prefix, of every status, in the order of
    (id, namespace), or wholly reversed, after `after_exclusive` in the direction of the scan."""

    namespace: str
    prefix: str = ""
    descending: bool = False
    after_exclusive: IdPlace | None = None
    limit: int = 50

    @property
    def bounds(self) -> tuple[IdPlace, IdPlace]:
        """The places between which the timers are, both exclusive."""
        first, end = (self.prefix, ""), (self.prefix + _AFTER_EVERY_ID, "")
        return _narrowed(first, end, self.after_exclusive, descending=self.descending)


class IdPage(Struct, frozen=True):
    """Everything up to `looked_until` was looked at; None at the end. A store that has to read past
    the ids of other namespaces may stop before it has found as many timers as asked for."""

    found: Sequence[FoundTimer]
    looked_until: IdPlace | None


class CappedCount(Struct, frozen=True):
    """With `is_minimum` there are more than that."""

    timers: int
    is_minimum: bool = False


def _narrowed(
    first: _Place, end: _Place, after: _Place | None, *, descending: bool
) -> tuple[_Place, _Place]:
    """The bounds of the part that comes after a place, in the direction of a scan."""
    if after is None:
        return first, end
    return (first, min(end, after)) if descending else (max(first, after), end)


class SearchStore(Protocol):
    """Reads of a timer store that never take long, however many timers there are. They raise
    `StoreUnavailable` as the timer store does."""

    async def scan_in_order(self, query: OrderedQuery) -> Sequence[FoundTimer]:
        """Up to `limit` timers after the place; fewer only at the end. As in `TimerStore.scan`, the
        cost is that of the answer, and a timer that keeps its instant is neither repeated nor left
        out by scans that continue from the last place."""
        ...

    async def scan_ids(self, query: IdQuery) -> IdPage:
        """Up to `limit` timers after the place. The cost is bounded, whatever was found."""
        ...

    async def count_in_order(self, query: OrderedQuery, *, most: int) -> CappedCount:
        """The number of timers that match, whatever the place and the limit of the query. A store
        may stop after `most`."""
        ...

    async def count_ids(self, query: IdQuery, *, most: int) -> CappedCount:
        """The number of timers with ids that begin with the prefix, likewise."""
        ...
