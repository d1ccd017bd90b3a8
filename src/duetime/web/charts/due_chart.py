"""The timers that fall due, as bars."""

from collections.abc import Sequence

from msgspec import Struct

from duetime.domain.wording import span
from duetime.ports.inspection import DueCount
from duetime.service.reporting.due_outlook import Horizon, Outlook
from duetime.web.charts.bars import Bar, bar_chart
from duetime.web.charts.drawing import Drawing
from duetime.web.charts.frame import Mark

_MARKS = {
    Horizon.HOUR: (
        Mark(0, "now"),
        Mark(1 / 4, "in 15 min", are_extra=True),
        Mark(1 / 2, "in 30 min"),
        Mark(3 / 4, "in 45 min", are_extra=True),
        Mark(1, "in 1 h"),
    ),
    Horizon.DAY: (
        Mark(0, "now"),
        Mark(1 / 4, "in 6 h", are_extra=True),
        Mark(1 / 2, "in 12 h"),
        Mark(3 / 4, "in 18 h", are_extra=True),
        Mark(1, "in 1 day"),
    ),
    Horizon.WEEK: (
        Mark(0, "now"),
        Mark(2 / 7, "in 2 days"),
        Mark(4 / 7, "in 4 days", are_extra=True),
        Mark(6 / 7, "in 6 days"),
    ),
}


class DueChart(Struct, frozen=True):
    """`rows` has the bars that are not empty, each as its span and its number."""

    drawing: Drawing
    total: str
    rows: Sequence[tuple[str, str]]
    cut: str | None
    """The number at which bars are cut off, if some are."""
    leaves_out: int


def due_chart(outlook: Outlook) -> DueChart:
    horizon, bars = outlook.horizon, outlook.bars
    rows = [
        (_span_of(place, horizon), _number(each.timers, is_all=each.is_all))
        for place, each in enumerate(bars)
    ]
    are_all = all(each.is_all for each in bars)
    cut = max((each.timers for each in bars if not each.is_all), default=None)
    total = _number(sum(each.timers for each in bars), is_all=are_all)
    drawing = bar_chart(
        [
            Bar(each.timers, f"{words}: {number} {_noun(each)}", is_cut=not each.is_all)
            for each, (words, number) in zip(bars, rows, strict=True)
        ],
        _MARKS[horizon],
        label=f"Timers that fall due in the next {horizon.value}",
        description=f"{total} in all, in steps of {span(horizon.bar_seconds * 1_000)}",
    )
    return DueChart(
        drawing,
        total,
        [row for row, each in zip(rows, bars, strict=True) if each.timers],
        None if cut is None else f"{cut:,}",
        outlook.leaves_out,
    )


def _noun(each: DueCount) -> str:
    return "timer" if each.timers == 1 and each.is_all else "timers"


def _number(count: int, *, is_all: bool) -> str:
    return f"{count:,}" if is_all else f"{count:,}+"


def _span_of(place: int, horizon: Horizon) -> str:
    """The span of a bar from now on, such as "in 5 to 6 min"."""
    step_ms = horizon.bar_seconds * 1_000
    until = span((place + 1) * step_ms)
    return f"within {until}" if place == 0 else f"in {span(place * step_ms)} to {until}"
