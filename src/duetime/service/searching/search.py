"""A search as somebody asks for it, and the answer."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from duetime.domain.bulk import TimerFilter
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.searching import IdPlace, InstantPlace
from duetime.ports.store import SortField


class SearchOrder(Enum):
    """By this, then by timer_uuid, or by the namespace for timers of one id."""

    CREATED_AT = "created_at"
    EXECUTE_AT = "execute_at"
    ID = "id"

    @property
    def sort(self) -> SortField:
        """The sort field of an order by instants."""
        return SortField(self.value)


class Cursor(Struct, frozen=True):
    """The place at which a page begins, exclusive. With `is_before` the page ends there. Without a
    place it is the first page, or the last."""

    place: InstantPlace | IdPlace | None
    is_before: bool = False


class Search(Struct, frozen=True, kw_only=True):
    """Timers of some namespaces that match the filter. The namespaces are those that the caller may
    see, or the one that they chose."""

    namespaces: tuple[str, ...]
    order: SearchOrder = SearchOrder.CREATED_AT
    descending: bool = True
    status: TimerStatus | None = None
    matching: TimerFilter = TimerFilter()
    limit: int = 50
    cursor: Cursor | None = None

    @property
    def has_window(self) -> bool:
        window = (self.matching.due_from_inclusive, self.matching.due_until_exclusive)
        return window != (None, None)

    @property
    def is_indexed(self) -> bool:
        """Whether an index of the store has exactly the timers that match, in this order. If not,
        timers that do not match are looked at, too."""
        if self.matching.reads_contents:
            return False
        if self.order is SearchOrder.ID:
            return self.status is None and not self.has_window
        has_range = self.has_window and self.order is not SearchOrder.EXECUTE_AT
        return self.matching.id_prefix is None and not has_range

    def matches(self, timer: Timer) -> bool:
        return self.status in (None, timer.status) and self.matching.matches(timer)


class Unshown(Enum):
    """The reason why a timer is shown without its contents."""

    UNREADABLE = "unreadable"
    """This release cannot read it."""

    SEALED = "sealed"
    """This process lacks the key that its contents are encrypted with."""


class ListedTimer(Struct, frozen=True):
    """A timer with its contents, unless `unshown` says why they are missing."""

    timer: Timer
    unshown: Unshown | None = None


class FoundPage(Struct, frozen=True, kw_only=True):
    """One page, in the order of the search. `next` and `previous` lead to the pages beside it, if
    there may be any.

    A search that no index serves stops after a while, with fewer timers than asked for: then
    `stopped_at` is the place where it stopped, and the cursor in its direction goes on there.
    `looked_at` counts the timers that were looked at, `unreadable` those of them that could not be
    compared with the filter.
    """

    listed: Sequence[ListedTimer]
    next: Cursor | None
    previous: Cursor | None
    looked_at: int
    stopped_at: InstantPlace | IdPlace | None = None
    unreadable: int = 0
