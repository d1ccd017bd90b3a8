"""The attempts of a timer as rows of a table."""

from collections.abc import Mapping

from rich.text import Text

from duetime.api.http.instant_text import parse_instant
from duetime.cli.output.terminal import printable
from duetime.cli.output.wording import lateness, span
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import MICROSECONDS_PER_MS

ATTEMPT_HEADINGS = ("attempt", "due", "lateness", "duration", "outcome")


def attempt_row(attempt: Mapping[str, object]) -> list[Text]:
    """How late it was sent, how long its answer took and how it ended; "-" for what nobody knows
    and for what an older server does not tell."""
    due_at, sent_at, answered_at = (attempt.get(n) for n in ("due_at", "sent_at", "answered_at"))
    duration_ms = _between_ms(sent_at, answered_at)
    return [
        Text(printable(str(attempt.get("number")))),
        Text(printable(str(due_at))),
        Text(lateness(_between_ms(due_at, sent_at))),
        Text("-" if duration_ms is None else span(duration_ms)),
        _outcome(attempt),
    ]


def _outcome(attempt: Mapping[str, object]) -> Text:
    """In one column with the error, or the table would be too wide for most terminals."""
    outcome, error = attempt.get("outcome"), attempt.get("error")
    if error is None:
        return Text("-" if outcome is None else printable(str(outcome)))
    # An error may begin with the same word.
    is_told = outcome is None or str(error).startswith(f"{outcome}: ")
    return Text(printable(str(error) if is_told else f"{outcome}: {error}"), style="red")


def _between_ms(start: object, end: object) -> float | None:
    if start is None or end is None:
        return None
    try:
        began, ended = parse_instant("start", str(start)), parse_instant("end", str(end))
    except InvalidInput:
        return None
    return (ended - began) / MICROSECONDS_PER_MS
