"""Bulk operations on a terminal."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import UNSET, Raw, json
from rich.console import Console
from rich.text import Text

from duetime.cli.client.answers import Operation
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import ExitCode, printable
from duetime.clock import SystemClock
from duetime.domain.wording import counted, relative_text

_COLOURS = {"running": "yellow", "completed": "green", "aborted": "red", "failed": "red"}

_COLUMNS = (
    # `show` and `abort` need the whole id.
    "id",
    Column("action", Cut.END, least=10, enough=10),
    Column("namespace", Cut.MIDDLE, least=9, enough=9),
    "status",
    *(Column("changed", extra=1), Column("started", extra=2)),
    Column("by", Cut.END, least=8, enough=12, extra=3, hidden_if_empty=True),
    Column("created_at", extra=4),
)

Show = Callable[[Operation], None]


def print_operations(operations: Sequence[Operation]) -> None:
    if not operations:
        print("no operations in the last seven days")
        return
    now = SystemClock().now()
    print_table(
        _COLUMNS,
        [
            [
                Text(printable(each.id)),
                Text(each.action),
                Text(printable(each.namespace)),
                _status(each),
                Text(f"{each.changed:,}"),
                Text(relative_text(each.created_at, now)),
                Text(printable(each.started_by or "-")),
                Text(printable(each.created_at)),
            ]
            for each in operations
        ],
    )


def print_operation(operation: Operation) -> None:
    fields = [
        ("id", Text(printable(operation.id))),
        ("action", Text(operation.action)),
        ("namespace", Text(printable(operation.namespace))),
        *((name, Text(printable(value))) for name, value in _selected(operation)),
        ("status", _status(operation)),
        ("matched", Text(_matched(operation))),
        ("looked at", Text(f"{operation.scanned:,}")),
        ("changed", Text(f"{operation.changed:,}")),
        ("skipped", Text(f"{operation.skipped:,}")),
        ("executing", Text(f"{operation.executing:,}")),
        ("started", Text(operation.created_at)),
        ("started by", Text(printable(operation.started_by or "-"))),
        ("finished", Text(operation.finished_at or "-")),
    ]
    if operation.error is not None:
        fields.append(("error", Text(printable(operation.error))))
    print_fields(fields)


def _selected(operation: Operation) -> Iterator[tuple[str, str]]:
    """The timers that the operation is for, and where it moves them."""
    if not operation.filter:
        yield "timers", "all of the namespace"
    for name, value in operation.filter.items():
        yield re.sub("([A-Z])", r" \1", name).lower(), _condition(value)
    if operation.move_by is not UNSET:
        yield "moved by", operation.move_by
    if operation.execute_at is not UNSET:
        yield "moved to", operation.execute_at


def _condition(value: object) -> str:
    """A condition of a filter. That of the metadata has a key and a value, and is kept as JSON."""
    if not isinstance(value, Raw):
        return str(value)
    return "=".join(json.decode(value, type=dict[str, str]).values())


def operation_line(operation: Operation) -> str:
    why = "" if operation.error is None else f": {printable(operation.error)}"
    return f"operation {printable(operation.id)} {operation.status}{why}"


def left_running(operations: Iterable[Operation], *, cause: int | None) -> str:
    """Advice on operations that a command no longer follows. `cause` is the exit status that a
    failure gave the command; None stands for Ctrl-C."""
    if cause is None:
        words, command = "the server goes on; to stop it", "abort"
    elif cause == ExitCode.UNREACHABLE:
        words, command = (
            "the operation goes on when the server is back; to see how far it is",
            "show",
        )
    else:
        words, command = "the server goes on; to see how far it is", "show"
    commands = (f"  duetime operations {command} {printable(each.id)}" for each in operations)
    return "\n".join([f"{words}:", *commands])


@contextmanager
def operation_progress(operation: Operation, *, quiet: bool) -> Iterator[Show]:
    """A bar on a terminal; nothing elsewhere, where the result is enough."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress

    columns = [
        progress.TextColumn(printable(operation.namespace)),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,} of {task.total:,} timers"),
        progress.TimeRemainingColumn(),
    ]
    with progress.Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task("", total=operation.matched)

        def show(now: Operation) -> None:
            done = now.changed + now.skipped
            display.update(task, completed=done, total=max(now.matched, done))

        yield show


def _status(operation: Operation) -> Text:
    return Text(operation.status, style=_COLOURS.get(operation.status, ""))


def _matched(operation: Operation) -> str:
    matched = counted(operation.matched, "timer")
    return f"at least {matched}" if operation.matched_is_minimum else matched
