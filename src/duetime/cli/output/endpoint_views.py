"""Endpoints on the terminal."""

from collections.abc import Sequence

from rich.text import Text

from duetime.cli.client.answers import Endpoint, Pause, Paused
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_table
from duetime.cli.terminal import console, printable

_STYLES = {"closed": "green", "open": "bold red", "halfOpen": "yellow", "paused": "magenta"}
_STATES = {"closed": "closed", "open": "open", "halfOpen": "half open", "paused": "paused"}
_COLUMNS = (
    # `--endpoint` of other commands needs the whole origin.
    *("endpoint", "state", Column("under way", extra=4)),
    *(Column("waiting", extra=2), Column("failures in a row", extra=3)),
    *(Column("attempts", extra=6, hidden_if_empty=True),),
    *(Column("failed", extra=5, hidden_if_empty=True),),
    *(Column("p50", extra=7, hidden_if_empty=True), Column("p99", extra=7, hidden_if_empty=True)),
    Column("last error", Cut.WRAP, least=20, enough=20, extra=1),
)


def print_endpoints(shown: Sequence[Endpoint]) -> None:
    if shown:
        print_table(_COLUMNS, [_row(each) for each in shown])
    else:
        console().print("No endpoint is being called, none is paused, and none failed recently.")


def print_pause(pause: Pause) -> None:
    print(f"{printable(pause.endpoint)} is {_pause_text(pause)}.")


def _row(endpoint: Endpoint) -> list[Text]:
    state = endpoint.state if endpoint.paused is None else "paused"
    remark = endpoint.last_error or ""
    if endpoint.paused is not None:
        remark = _pause_text(endpoint.paused) + (f"; {remark}" if remark else "")
    return [
        Text(printable(endpoint.endpoint)),
        Text(_STATES[state], style=_STYLES[state]),
        Text(f"{endpoint.in_flight:,}"),
        Text(f"{endpoint.waiting:,}"),
        Text(f"{endpoint.consecutive_failures:,}"),
        *map(Text, _figures(endpoint)),
        Text(printable(remark)),
    ]


def _figures(endpoint: Endpoint) -> tuple[str, ...]:
    figures = endpoint.last15_minutes
    if figures is None:
        return ("", "", "", "")
    return (
        f"{figures.attempts:,}",
        f"{figures.failures / figures.attempts:.1%}",
        _duration(figures.p50_ms),
        _duration(figures.p99_ms),
    )


def _duration(ms: float) -> str:
    return f"{ms / 1_000:.1f} s" if ms >= 1_000 else f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"


def _pause_text(pause: Paused | Pause) -> str:
    reason = "" if pause.reason is None else f": {pause.reason}"
    return printable(f"paused since {pause.paused_at} by {pause.paused_by}{reason}")
