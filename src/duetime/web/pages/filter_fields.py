"""The filter of timers as the fields of an address or a form."""

from collections.abc import Iterator

from duetime.domain.bulk import TimerFilter
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, format_instant
from duetime.web.forms.due import read_instant
from duetime.web.request import Fields


def filter_in(fields: Fields, now: Instant) -> TimerFilter:
    """The filter, but for the namespace and the status. Raises `InvalidInput`."""
    member = fields.get("metadata")
    key, equals, value = (member or "").partition("=")
    if member is not None and not (key and equals):
        raise InvalidInput("metadata", "must be a key and a value, such as customer=42")
    return TimerFilter(
        due_from_inclusive=_instant("due_from", fields, now),
        due_until_exclusive=_instant("due_until", fields, now),
        id_prefix=fields.get("id_prefix"),
        endpoint=fields.get("endpoint"),
        error_contains=fields.get("error"),
        metadata_key=None if member is None else key.strip(),
        metadata_value=None if member is None else value.strip(),
    )


def filter_fields(matching: TimerFilter) -> Iterator[tuple[str, str]]:
    """The parameters by which the timers page has the same filter."""
    first, end = matching.due_from_inclusive, matching.due_until_exclusive
    member = matching.metadata_key and f"{matching.metadata_key}={matching.metadata_value}"
    for name, text in (
        ("due_from", None if first is None else format_instant(first)),
        ("due_until", None if end is None else format_instant(end)),
        ("id_prefix", matching.id_prefix),
        ("endpoint", matching.endpoint),
        ("error", matching.error_contains),
        ("metadata", member),
    ):
        if text is not None:
            yield name, text


def _instant(name: str, fields: Fields, now: Instant) -> Instant | None:
    """An instant, or one relative to now: a bookmark with such ones moves along with the time."""
    text = fields.get(name)
    return None if text is None else read_instant(name, text, now, fields.get("zone"))
