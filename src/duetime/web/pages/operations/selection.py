"""The timers that an operation is for, as the address of the timers page names them."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote, unquote_to_bytes, urlencode

from msgspec import Struct

from duetime.domain.bulk import BulkOperation, TimerFilter
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_CHOSEN_TIMERS
from duetime.domain.timer import TimerStatus
from duetime.web.pages.filter_fields import filter_fields, filter_in
from duetime.web.request import Fields

EVERYTHING = TimerFilter()
_LIST = re.compile(r"/ui/timers(\?[!-~]*)?")
_FAILED = TimerStatus.FAILED.label


class Condition(Struct, frozen=True):
    """A condition in words: a text, or an instant."""

    label: str
    text: str | None = None
    at: Instant | None = None


class Selection(Struct, frozen=True, kw_only=True):
    """Chosen timers, or those of a namespace that match a filter. The status pending is no
    condition: it is understood for most actions. Failed timers are seldom all there are. `back` is
    the address of the list in which timers were chosen."""

    namespace: str | None = None
    status: str | None = None
    filter: TimerFilter = EVERYTHING
    chosen: tuple[TimerKey, ...] = ()
    back: str = "/ui/timers"

    @property
    def is_empty(self) -> bool:
        return not self.chosen and self.filter == EVERYTHING and self.status != _FAILED

    @property
    def conditions(self) -> Sequence[Condition]:
        return tuple(conditions_of(self.filter))

    @property
    def timers_path(self) -> str:
        """The page from which the selection came."""
        return self.back if self.chosen else f"/ui/timers?{urlencode(self.fields)}"

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        """The fields of a form or a query that make the same selection."""
        if self.chosen:
            return [*(("timer", chosen_text(key)) for key in self.chosen), ("back", self.back)]
        named = [("namespace", self.namespace), ("status", self.status)]
        given = [(name, text) for name, text in named if text is not None]
        return [*given, *filter_fields(self.filter)]


def selection_of(fields: Fields, now: Instant) -> Selection:
    """Raises `InvalidInput`."""
    chosen = fields.all("timer")
    if len(chosen) > MAX_CHOSEN_TIMERS:
        problem = f"may be chosen {MAX_CHOSEN_TIMERS} times at most: choose everything that matches"
        raise InvalidInput("timer", problem)
    if chosen:
        back = fields.get("back") or ""
        return Selection(
            chosen=tuple(dict.fromkeys(map(_key, chosen))),
            back=back if _LIST.fullmatch(back) else "/ui/timers",
        )
    return Selection(
        namespace=fields.get("namespace"),
        status=fields.get("status"),
        filter=filter_in(fields, now),
    )


def chosen_text(key: TimerKey) -> str:
    """The value of a field that names a timer: the end of the path of its page."""
    return f"{quote(key.namespace, safe='')}/{quote(key.id, safe='')}"


def conditions_of(matching: TimerFilter) -> Iterator[Condition]:
    if matching.due_from_inclusive is not None:
        yield Condition("Due from", at=matching.due_from_inclusive)
    if matching.due_until_exclusive is not None:
        yield Condition("Due before", at=matching.due_until_exclusive)
    if matching.id_prefix is not None:
        yield Condition("Id begins with", matching.id_prefix)
    if matching.endpoint is not None:
        yield Condition("Calls", matching.endpoint)
    if matching.error_contains is not None:
        yield Condition("Last error contains", matching.error_contains)
    if matching.metadata_key is not None:
        yield Condition("Metadata", f"{matching.metadata_key} = {matching.metadata_value}")


def timers_path(operation: BulkOperation) -> str:
    """The timers page with the filter of the operation."""
    fields = [("namespace", operation.namespace), *filter_fields(operation.filter)]
    return f"/ui/timers?{urlencode(fields)}"


def _key(text: str) -> TimerKey:
    namespace, slash, id = text.partition("/")
    try:
        parts = [unquote_to_bytes(part).decode() for part in (namespace, id)]
    except UnicodeDecodeError:
        raise InvalidInput("timer", "must be UTF-8") from None
    if not all(parts) or not slash:
        raise InvalidInput("timer", "must be a namespace and an id, such as default/order-17")
    return TimerKey(*parts)
