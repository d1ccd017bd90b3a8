"""The attempts of a timer as rows of a table."""

from collections.abc import Mapping

from rich.text import Text

from duetime.api.instant_text import parse_instant
from duetime.cli.terminal import printable
from duetime.cli.wording import lateness, span
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import MICROSECONDS_PER_MS

ATTEMPT_HEADINGS = ("attempt", "due", "lateness", "duration", "error")


def attempt_row(attempt: Mapping[str, object]) -> list[Text]:
    """How late it was sent and how long its answer took; "-" for what nobody knows."""
    due_at, sent_at, answered_at = (attempt.get(n) for n in ("due_at", "sent_at", "answered_at"))
    duration_ms = _between_ms(sent_at, answered_at)
    error = attempt.get("error")
    return [
        Text(printable(str(attempt.get("number")))),
        Text(printable(str(due_at))),
        Text(lateness(_between_ms(due_at, sent_at))),
        Text("-" if duration_ms is None else span(duration_ms)),
        Text("-") if error is None else Text(printable(str(error)), style="red"),
    ]


def _between_ms(start: object, end: object) -> float | None:
    if start is None or end is None:
        return None
    try:
        began, ended = parse_instant("start", str(start)), parse_instant("end", str(end))
    except InvalidInput:
        return None
    return (ended - began) / MICROSECONDS_PER_MS
