"""The filter of timers as the fields of an address or a form."""

import re
from collections.abc import Iterator
from contextlib import suppress

from msgspec import MsgspecError
from msgspec.json import decode, encode

from duetime.domain.bulk import TimerFilter
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, format_instant
from duetime.web.forms.due import read_instant
from duetime.web.request import Fields

_QUOTED_KEY = re.compile(r"""("(?:[^"\\]|\\.)*")\s*=""")


def filter_in(fields: Fields, now: Instant) -> TimerFilter:
    """The filter, but for the namespace and the status. Raises `InvalidInput`."""
    key, value = _member(fields.get("metadata"))
    return TimerFilter(
        due_from_inclusive=_instant("due_from", fields, now),
        due_until_exclusive=_instant("due_until", fields, now),
        id_prefix=fields.get("id_prefix"),
        endpoint=fields.get("endpoint"),
        error_contains=fields.get("error"),
        metadata_key=key,
        metadata_value=value,
    )


def filter_fields(matching: TimerFilter) -> Iterator[tuple[str, str]]:
    """The parameters by which the timers page has the same filter."""
    first, end = matching.due_from_inclusive, matching.due_until_exclusive
    for name, text in (
        ("due_from", None if first is None else format_instant(first)),
        ("due_until", None if end is None else format_instant(end)),
        ("id_prefix", matching.id_prefix),
        ("endpoint", matching.endpoint),
        ("error", matching.error_contains),
        ("metadata", _member_text(matching)),
    ):
        if text is not None:
            yield name, text


def _member(text: str | None) -> tuple[str | None, str | None]:
    """The key and the value of a member. A key may be given as a JSON string."""
    if text is None:
        return None, None
    if quoted := _QUOTED_KEY.match(text):
        with suppress(MsgspecError):
            return decode(quoted[1], type=str), text[quoted.end() :].strip()
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise InvalidInput("metadata", "must be a key and a value, such as customer=42")
    return key.strip(), value.strip()


def _member_text(matching: TimerFilter) -> str | None:
    """The text from which `_member` reads the same."""
    key, value = matching.metadata_key, matching.metadata_value
    if key is None or value is None:
        return None
    if not key or "=" in key or key.startswith('"') or key != key.strip():
        key = encode(key).decode()
    # A value that is JSON matches the text that it stands for.
    return f"{key}={value if value == value.strip() else encode(value).decode()}"


def _instant(name: str, fields: Fields, now: Instant) -> Instant | None:
    """An instant, or one relative to now: a bookmark with such ones moves along with the time."""
    text = fields.get(name)
    return None if text is None else read_instant(name, text, now, fields.get("zone"))
