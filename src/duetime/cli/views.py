"""Timers as the server answers them, shown to a person."""

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec
from rich.table import Table
from rich.text import Text

from duetime.api.instant_text import parse_instant
from duetime.cli.terminal import console, printable
from duetime.cli.wording import relative
from duetime.clock import SystemClock
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant

TimerData = Mapping[str, object]

_STATUS_STYLES = {
    "pending": "yellow",
    "executing": "cyan",
    "completed": "green",
    "failed": "red",
    "canceled": "dim",
}


def print_json(data: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def print_timer(headline: str, data: object) -> None:
    """A headline and below it every field the server told."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    now = SystemClock().now()
    for name, value in cast(TimerData, data).items():
        table.add_row(name, _field(name, value, now))
    output = console()
    if headline:
        output.print(headline)
    output.print(table)


def print_timers(timers: Iterable[TimerData], total: object, offset: object) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("due", no_wrap=True)
    table.add_column("execute_at", no_wrap=True)
    table.add_column("type", no_wrap=True)
    now = SystemClock().now()
    for timer in timers:
        table.add_row(
            _plain(timer.get("id")),
            _status(timer.get("status")),
            _relative(timer.get("execute_at"), now),
            _plain(timer.get("execute_at")),
            _plain(timer.get("callback_type")),
        )
    output = console()
    if table.row_count:
        output.print(table)
    first = int(str(offset)) + 1
    shown = f"{first} to {first + table.row_count - 1} of " if table.row_count else "0 of "
    output.print(Text(f"{shown}{total} timers", style="dim"))


def _field(name: str, value: object, now: Instant) -> Text:
    if name == "status":
        return _status(value)
    if name.endswith("_at") and isinstance(value, str):
        return Text.assemble(_plain(value), "  ", (_relative(value, now).plain, "dim"))
    return _plain(value)


def _status(value: object) -> Text:
    return Text(printable(str(value)), style=_STATUS_STYLES.get(str(value), ""))


def _relative(value: object, now: Instant) -> Text:
    try:
        return Text(relative(parse_instant("instant", str(value)), now))
    except InvalidInput:
        return Text("-")


def _plain(value: object) -> Text:
    if value is None:
        return Text("-")
    return Text(printable(value if isinstance(value, str) else msgspec.json.encode(value).decode()))
