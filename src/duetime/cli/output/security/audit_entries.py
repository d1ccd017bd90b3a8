"""Entries of the audit log on a terminal: a table, or a line for each as it arrives."""

from collections.abc import Sequence

from rich.text import Text

from duetime.cli.client.answers import AuditEntry
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_table
from duetime.cli.terminal import console, printable

OK = "ok"

_COLUMNS = (
    Column("at", Cut.END, least=20, enough=20),
    Column("actor", Cut.MIDDLE, least=6, enough=10),
    # Names may repeat.
    Column("key", Cut.MIDDLE, least=4, enough=16, hidden_if_empty=True),
    Column("action", Cut.END, least=12, enough=12),
    Column("namespace", Cut.MIDDLE, least=9, enough=9),
    Column("target", Cut.APART, least=8, enough=12),
    Column("result", Cut.END, least=8, enough=10),
    Column("address", extra=2),
    Column("details", Cut.WRAP, least=20, enough=24, extra=1, hidden_if_empty=True),
)

_ACTION_WIDTH = len("operation.start")


def print_entries(entries: Sequence[AuditEntry]) -> None:
    rows = [
        [
            Text(printable(entry.at), style="dim"),
            Text(printable(entry.actor)),
            _text(entry.key_id),
            Text(printable(entry.action), style="bold"),
            _text(entry.namespace),
            _text(entry.target),
            _result(entry),
            _text(entry.address),
            _text(entry.details),
        ]
        for entry in entries
    ]
    print_table(_COLUMNS, rows)


def print_entry_line(entry: AuditEntry) -> None:
    """The entry in the order of the table, with what is known about it only."""
    place = "/".join(part for part in (entry.namespace, entry.target) if part is not None)
    key = "" if entry.key_id is None else f" ({printable(entry.key_id)})"
    words = [
        Text(printable(entry.at), style="dim"),
        Text(printable(entry.action).ljust(_ACTION_WIDTH), style="bold"),
        _result(entry),
        Text(printable(place)),
        Text(f"by {printable(entry.actor)}{key}"),
    ]
    if entry.address is not None:
        words.append(Text(f"from {printable(entry.address)}"))
    if entry.details is not None:
        words.append(Text(f"({printable(entry.details)})", style="dim"))
    console().print(Text("  ").join(word for word in words if word.plain), soft_wrap=True)


def _text(text: str | None) -> Text:
    return Text("-" if text is None else printable(text))


def _result(entry: AuditEntry) -> Text:
    return Text(printable(entry.result), style="green" if entry.result == OK else "red")
