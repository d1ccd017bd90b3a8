"""A list of timers of either API as a table for a person."""

from collections.abc import Sequence

from rich.text import Text

from duetime.cli.client.field_names import TimerData
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.lateness.explanation_view import milliseconds
from duetime.cli.output.layout import print_table
from duetime.cli.output.timer_views import status_text
from duetime.cli.terminal import console, printable
from duetime.clock import SystemClock
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, parse_instant
from duetime.domain.wording import relative_text

_NAMESPACE = Column("namespace", Cut.APART, least=9, enough=12)
_COLUMNS = (
    # Other commands need the whole id, a UUID for example.
    Column("id", Cut.APART, least=9, enough=36),
    *("status", "due", Column("execute_at", extra=1)),
    Column("callback", Cut.MIDDLE, least=12, enough=20),
    Column("last_error", Cut.END, least=12, enough=24, hidden_if_empty=True),
    # The v1 API alone tells the attempts in lists.
    Column("late", extra=2, hidden_if_empty=True),
)


def print_timers(
    timers: Sequence[TimerData], note: str, *, with_namespace: bool, wide: bool
) -> None:
    """The table and a last line with the note. The line adds that something was cut."""
    is_cut = False
    if timers:
        now = SystemClock().now()
        rows = [_row(timer, now, with_namespace=with_namespace) for timer in timers]
        columns = (_NAMESPACE, *_COLUMNS) if with_namespace else _COLUMNS
        is_cut = print_table(columns, rows, wide=wide)
    cut = "; shortened to fit, --wide shows all" if is_cut else ""
    console().print(Text(note + cut, style="dim"), soft_wrap=True)


def _row(timer: TimerData, now: Instant, *, with_namespace: bool) -> list[Text]:
    execute_at = timer.get("executeAt", timer.get("execute_at"))
    cells = [
        _plain(timer.get("id")),
        status_text(timer.get("status")),
        Text(relative_text(_due_at(timer), now)),
        _plain(execute_at),
        _plain(_callback(timer)),
        _plain(timer.get("lastError", timer.get("last_error"))),
        _plain(_lateness(timer)),
    ]
    return [_plain(timer.get("namespace")), *cells] if with_namespace else cells


def _due_at(timer: TimerData) -> object:
    """The instant of the next attempt, which is later than `execute_at` if a retry is planned; None
    for a canceled timer, which will never be due."""
    execute_at = timer.get("executeAt", timer.get("execute_at"))
    match timer.get("status"):
        case "canceled":
            return None
        case "pending":
            return timer.get("nextAttemptAt", timer.get("due_at")) or execute_at
        case _:
            return execute_at


def _lateness(timer: TimerData) -> str | None:
    """The time from the instant at which the last attempt was due, or the timer was created if that
    was later, until the attempt was sent; None if it was not sent."""
    attempts = timer.get("attempts")
    if not isinstance(attempts, list) or not attempts:
        return None
    try:
        sent_at = parse_instant(attempts[-1]["sentAt"])
        since = max(parse_instant(attempts[-1]["dueAt"]), parse_instant(str(timer["createdAt"])))
    except (KeyError, TypeError, ValueError):
        return None
    return milliseconds(max(0, sent_at - since) / MICROSECONDS_PER_MS)


def _callback(timer: TimerData) -> object:
    """The URL; for a callback that is not made over HTTP its type, and the subject if it is
    known. Older servers do not tell the URL of a platform timer."""
    kind = timer.get("callbackType", timer.get("callback_type"))
    target = timer.get("callbackUrl", timer.get("callback_target"))
    if kind in (None, "http"):
        return target or kind
    return kind if target is None else f"{kind} {target}"


def _plain(value: object) -> Text:
    return Text("-" if value is None else printable(str(value)))
