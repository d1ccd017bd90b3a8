"""Timers and health as tables and fields for a person."""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec
from rich.text import Text

from duetime.cli.client.field_names import TimerData, in_platform_names
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import console, printable
from duetime.clock import SystemClock
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, parse_instant
from duetime.domain.wording import lateness, relative_text, span

_STATUS_STYLES = {
    "pending": "yellow",
    "executing": "cyan",
    "completed": "green",
    "failed": "red",
    "canceled": "dim",
}
_RETRIES = {
    "max_retries": "at most {} retries",
    "initial_interval": "the first after {}",
    "backoff_multiplier": "each wait {} times the last",
    "max_interval": "no wait above {}",
    "max_retry_attempts_duration": "until {} after the first attempt",
}
"""Members of a retry policy in words, in the order in which they are shown."""

_ATTEMPT_COLUMNS = (
    *("attempt", Column("due", extra=1), "lateness", Column("duration", extra=2)),
    # All columns fit a terminal of 80 characters.
    Column("outcome", Cut.WRAP, least=16, enough=16),
)
_NEW_FIRING = "a new firing: attempts start over"
_FINISHED = {"completed", "failed", "canceled"}
_DUE = {"execute_at", "due_at", "next_attempt_at"}
"""Fields with an instant that does not matter any more once the timer is finished."""


def print_json(data: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def show_timer(headline: str, data: object, *, as_json: bool) -> None:
    """Print the result of a command about one timer; `data` may be empty."""
    if as_json:
        print_json(data)
    elif isinstance(data, dict):
        print_timer(headline, data)
    else:
        print(headline)


def print_timer(headline: str, data: object) -> None:
    """A headline, every field that the server sent, and a table of attempts."""
    timer = in_platform_names(cast(TimerData, data))
    now = SystemClock().now()
    if headline:
        console().print(headline)
    past = _DUE if timer.get("status") in _FINISHED else set()
    print_fields(
        [
            row
            for name, value in timer.items()
            for row in _fields(name, value, None if name in past else now)
        ]
    )
    attempts = cast(list[TimerData], timer.get("attempts") or [])
    if attempts:
        console().print()
        print_table(_ATTEMPT_COLUMNS, list(_attempt_rows(attempts)))
        _print_last_answer(attempts[-1])


def print_health(headline: str, url: str, data: object) -> None:
    """The server's URL, and every field of its answer."""
    now = SystemClock().now()
    fields = [("server", _plain(url))]
    for name, value in cast(TimerData, data or {}).items():
        if isinstance(value, dict):
            fields += [(f"{name}.{inner}", _fact(inner, member)) for inner, member in value.items()]
        else:
            fields += _fields(name, value, now)
    console().print(headline)
    print_fields(fields)


def _fields(name: str, value: object, now: Instant | None) -> Iterator[tuple[str, Text]]:
    """The rows of one field; a callback has a row for each of its parts. An instant is related to
    `now`, if that is given."""
    if name == "callback_config" and isinstance(value, dict):
        for member, content in value.items():
            if member == "headers" and isinstance(content, dict):
                for header, text in content.items():
                    yield "callback.headers", _plain(f"{header}: {text}")
            elif member != "type":
                yield (
                    f"callback.{member}",
                    _json(content) if member == "payload" else _plain(content),
                )
    elif name == "retry_policy":
        yield name, _retry_policy(value)
    elif name == "metadata":
        yield name, Text("-") if value is None else _json(value)
    elif name == "attempts":
        if not value:
            yield name, Text("none")
    elif name == "status":
        yield name, status_text(value)
    elif name.endswith("_at") and isinstance(value, str) and now is not None:
        yield name, Text.assemble(_plain(value), "  ", (relative_text(value, now), "dim"))
    else:
        yield name, _plain(value)


def _retry_policy(value: object) -> Text:
    """The policy in words; members that are absent are left to the server."""
    if not isinstance(value, dict) or value.get("max_retries") == 0:
        return Text("none")
    shown = {name: printable(str(member)).removesuffix(".0") for name, member in value.items()}
    words = [phrase.format(shown[name]) for name, phrase in _RETRIES.items() if name in shown]
    rest = "" if len(words) == len(_RETRIES) else "; the rest by default"
    return Text(", ".join(words).replace("at most 1 retries", "at most 1 retry") + rest)


def _print_last_answer(attempt: TimerData) -> None:
    """The receiver's own words about the last attempt, line by line."""
    answer = attempt.get("answer")
    if isinstance(answer, str) and answer.strip():
        print(f"\nanswer of attempt {printable(str(attempt.get('number')))}:")
        for line in answer.strip().splitlines():
            print(f"  {printable(line)}")


def _attempt_rows(attempts: Sequence[TimerData]) -> Iterator[list[Text]]:
    """A row for each attempt, and one before attempts that start over, unless the outcome of the
    last one was that."""
    before: TimerData = {"number": 0}
    for attempt in attempts:
        starts_over = cast(int, attempt["number"]) <= cast(int, before["number"])
        if starts_over and before.get("outcome") != "rescheduled":
            yield [*map(Text, "----"), Text(_NEW_FIRING, style="dim")]
        yield _attempt_row(attempt)
        before = attempt


def _attempt_row(attempt: TimerData) -> list[Text]:
    """Lateness, duration and outcome of an attempt; "-" for values that the server did not send."""
    due_at, sent_at, answered_at = (attempt.get(n) for n in ("due_at", "sent_at", "answered_at"))
    duration_ms = _between_ms(sent_at, answered_at)
    return [
        Text(printable(str(attempt.get("number")))),
        Text(printable(str(due_at))),
        Text(lateness(_between_ms(due_at, sent_at))),
        Text("-" if duration_ms is None else span(duration_ms)),
        _outcome(attempt),
    ]


def _outcome(attempt: TimerData) -> Text:
    """Outcome and error in one column: with two the table would be too wide for most terminals."""
    outcome, error = attempt.get("outcome"), attempt.get("error")
    if error is None:
        return Text("-" if outcome is None else printable(str(outcome)))
    # Some errors already begin with the outcome.
    is_complete = outcome is None or str(error).startswith(f"{outcome}: ")
    return Text(printable(str(error) if is_complete else f"{outcome}: {error}"), style="red")


def _between_ms(start: object, end: object) -> float | None:
    if start is None or end is None:
        return None
    try:
        return (parse_instant(str(end)) - parse_instant(str(start))) / MICROSECONDS_PER_MS
    except ValueError:
        return None


def _fact(name: str, value: object) -> Text:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    text = Text(f"{value:,}") if is_count else _plain(value)
    if name == "clock_skewed" and value is True:
        text.stylize("red")
    return text


def status_text(value: object) -> Text:
    return Text(printable(str(value)), style=_STATUS_STYLES.get(str(value), ""))


def _plain(value: object) -> Text:
    if value is None:
        return Text("-")
    return Text(printable(value)) if isinstance(value, str) else _json(value)


def _json(value: object) -> Text:
    """JSON on one line, with spaces at which it may wrap."""
    return Text(printable(msgspec.json.format(msgspec.json.encode(value), indent=0).decode()))
