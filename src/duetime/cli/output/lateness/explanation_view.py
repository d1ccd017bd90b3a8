"""The explanation of a timer as a picture: a bar for each period, and the verdict in words."""

import sys
from collections.abc import Sequence

from msgspec import Struct
from rich.text import Text

from duetime.cli.output.layout import print_fields
from duetime.cli.output.timer_views import status_text
from duetime.cli.terminal import console, printable

PIPE_BAR_WIDTH = 40
"""Columns of the bars in a file or a pipe."""

MIN_BAR_WIDTH = 10

_STYLES = {
    "endpoint": "cyan",
    "retry_policy": "yellow",
    "accepted_late": "magenta",
    "not_recorded": "dim",
}
_OTHERS = "red"


class Period(Struct, frozen=True, rename="camel"):
    ms: float
    cause: str
    attempt: int
    sentence: str


class Explanation(Struct, frozen=True, rename="camel"):
    """The members of the server's answer that are shown."""

    namespace: str
    id: str
    status: str
    verdict: str
    asked_at: str
    node: str
    live: bool
    advice: str | None = None
    lateness_ms: float | None = None
    next_attempt_at: str | None = None
    periods: list[Period] = []
    owner: str | None = None
    owner_url: str | None = None
    node_url: str | None = None

    @property
    def owner_shares_address(self) -> bool:
        """Whether the node that knows why the timer waits may answer the next connection to the
        same address."""
        return not self.live and self.owner_url is not None and self.owner_url == self.node_url


def print_explanation(explanation: Explanation) -> None:
    output = console()
    output.print(Text(printable(explanation.verdict), style="bold"))
    print()
    fields = [
        ("timer", Text(printable(f"{explanation.id} in namespace {explanation.namespace}"))),
        ("status", status_text(explanation.status)),
        ("asked for", Text(printable(explanation.asked_at))),
    ]
    if explanation.lateness_ms is not None:
        fields.append(("late by", Text(milliseconds(explanation.lateness_ms))))
    if explanation.next_attempt_at is not None:
        fields.append(("next attempt", Text(printable(explanation.next_attempt_at))))
    fields.append(("answered by", Text(printable(explanation.node))))
    if not explanation.live and explanation.owner is not None:
        url = f" ({explanation.owner_url})" if explanation.owner_url else ""
        fields.append(("its node", Text(printable(f"{explanation.owner}{url}"))))
    print_fields(fields)
    if explanation.periods:
        print()
        width = output.width if output.is_terminal else None
        for line in timeline_lines(explanation.periods, width):
            output.print(line, soft_wrap=True)
        print()
        print_fields(_sentences(explanation.periods))
    if explanation.advice is not None:
        print()
        print_fields([("do", Text(printable(explanation.advice)))])


def timeline_lines(periods: Sequence[Period], width: int | None) -> list[Text]:
    """A line for each period: when it began, a bar to scale, its length and its cause. The lines
    fit a terminal of that width, unless it is very narrow."""
    starts = ["+" + milliseconds(sum(each.ms for each in periods[:n])) for n in range(len(periods))]
    lengths = [milliseconds(each.ms) for each in periods]
    causes = [printable(_cause(each)) for each in periods]
    beside = sum(max(map(len, column)) for column in (starts, lengths, causes)) + 3 * len("  ")
    bar_width = PIPE_BAR_WIDTH if width is None else max(MIN_BAR_WIDTH, width - beside)
    lines = []
    for n, (first, cells) in enumerate(_bars([each.ms for each in periods], bar_width)):
        bar = " " * first + _block() * cells
        lines.append(
            Text.assemble(
                (starts[n].rjust(max(map(len, starts))), "dim"),
                "  ",
                (bar.ljust(bar_width), _STYLES.get(periods[n].cause, _OTHERS)),
                "  ",
                lengths[n].rjust(max(map(len, lengths))),
                "  ",
                causes[n],
            )
        )
    return lines


def _bars(lengths: Sequence[float], width: int) -> list[tuple[int, int]]:
    """The first cell and the number of cells of each bar. Every bar has at least one."""
    total = sum(lengths) or 1.0
    bars, before = [], 0.0
    for length in lengths:
        first = min(int(before / total * width), width - 1)
        before += length
        bars.append((first, max(1, min(round(before / total * width), width) - first)))
    return bars


def milliseconds(ms: float) -> str:
    """Milliseconds with a thousands separator, and decimals where they matter."""
    if ms == 0:
        return "0 ms"
    return f"{ms:,.3f} ms" if ms < 1 else f"{ms:,.1f} ms" if ms < 1_000 else f"{ms:,.0f} ms"


def _cause(period: Period) -> str:
    words = period.cause.replace("_", " ")
    return f"{words} (attempt {period.attempt})" if period.attempt > 1 else words


def _sentences(periods: Sequence[Period]) -> list[tuple[str, Text]]:
    """One sentence for each cause: that of its longest period."""
    longest: dict[str, Period] = {}
    for period in periods:
        name = _cause(period)
        longest[name] = max(longest.get(name, period), period, key=lambda each: each.ms)
    return [(name, Text(printable(period.sentence))) for name, period in longest.items()]


def _block() -> str:
    """A character that fills a cell, as far as the output can show it."""
    try:
        "█".encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "#"
    return "█"
