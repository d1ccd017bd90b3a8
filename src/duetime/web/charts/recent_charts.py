"""The last quarter of an hour, as lines: attempts per second, and their lateness."""

from collections.abc import Sequence

from msgspec import Struct

from duetime.domain.wording import span
from duetime.service.reporting.recent_figures import SlotSum
from duetime.web.charts.drawing import Drawing
from duetime.web.charts.frame import Mark
from duetime.web.charts.lines import Line, line_chart
from duetime.web.charts.scale import short, short_ms

_MARKS = (
    Mark(0, "15 min ago"),
    Mark(1 / 3, "10 min ago", are_extra=True),
    Mark(2 / 3, "5 min ago"),
    Mark(1, "now"),
)
_ROWS = 15
"""Rows of the table beside the charts: one for each minute."""

NOT_KNOWN = "\N{EN DASH}"


class RecentRow(Struct, frozen=True):
    when: str
    fired: str
    completed: str
    p50: str
    p99: str


class RecentCharts(Struct, frozen=True):
    """`fired`, `p50` and `p99` are those of the last slot in which something fired within the last
    minute. `members` is the number of members that told the last slot."""

    rates: Drawing
    lateness: Drawing
    fired: str
    p50: str
    p99: str
    members: int
    rows: Sequence[RecentRow]
    knows_all: bool
    """Whether there are figures for all fifteen minutes."""


def recent_charts(slots: Sequence[SlotSum]) -> RecentCharts:
    known = [slot for slot in slots if slot.members]
    last = known[-1] if known else None
    minute = [slot for slot in slots[-12:] if slot.p99_ms is not None]
    seconds = [_seconds_ago(place, len(slots)) for place in range(len(slots))]

    def rates_at(place: int) -> str:
        slot = slots[place]
        if not slot.members:
            return f"{seconds[place]}: not known"
        return (
            f"{seconds[place]}: {_rate(slot.attempts_per_second)} attempts per second,"
            f" {_rate(slot.completed_per_second)} completed"
        )

    def lateness_at(place: int) -> str:
        slot = slots[place]
        if slot.p50_ms is None or slot.p99_ms is None:
            return f"{seconds[place]}: nothing fired"
        return f"{seconds[place]}: p50 {_ms(slot.p50_ms)}, p99 {_ms(slot.p99_ms)}"

    fired = _rate(last.attempts_per_second) if last else NOT_KNOWN
    p50, p99 = (_ms(minute[-1].p50_ms), _ms(minute[-1].p99_ms)) if minute else (NOT_KNOWN,) * 2
    return RecentCharts(
        rates=line_chart(
            [
                Line("Attempts", _values(slots, "attempts_per_second"), "line-1", is_filled=True),
                Line("Completed", _values(slots, "completed_per_second"), "line-2"),
            ],
            _MARKS,
            label="Fired per second in the last 15 minutes",
            description=f"Now {fired} attempts per second",
            words_at=rates_at,
            show=short,
        ),
        lateness=line_chart(
            [
                Line("p99", [slot.p99_ms for slot in slots], "line-3", is_filled=True),
                Line("p50", [slot.p50_ms for slot in slots], "line-1"),
            ],
            _MARKS,
            label="Lateness in the last 15 minutes",
            description=f"Now p50 {p50}, p99 {p99}",
            words_at=lateness_at,
            show=short_ms,
        ),
        fired=fired,
        p50=p50,
        p99=p99,
        members=last.members if last else 0,
        rows=_rows(slots),
        knows_all=len(known) == len(slots),
    )


def _values(slots: Sequence[SlotSum], name: str) -> list[float | None]:
    return [getattr(slot, name) if slot.members else None for slot in slots]


def _rows(slots: Sequence[SlotSum]) -> list[RecentRow]:
    """A row for each minute, the latest first."""
    size = max(len(slots) // _ROWS, 1)
    rows = []
    for number, start in enumerate(range(len(slots) - size, -1, -size)):
        part = [slot for slot in slots[start : start + size] if slot.members]
        late = [slot for slot in part if slot.p99_ms is not None and slot.p50_ms is not None]
        rows.append(
            RecentRow(
                when="this minute" if number == 0 else f"{number} min ago",
                fired=_rate(_mean([slot.attempts_per_second for slot in part])),
                completed=_rate(_mean([slot.completed_per_second for slot in part])),
                p50=_ms(_mean([slot.p50_ms or 0.0 for slot in late])),
                p99=_ms(max((slot.p99_ms or 0.0 for slot in late), default=None)),
            )
        )
    return rows


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rate(value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"


def _ms(value: float | None) -> str:
    if value is None:
        return NOT_KNOWN
    return f"{value:.1f} ms" if value < 100 else span(value)


def _seconds_ago(place: int, count: int) -> str:
    minutes = 15 * (count - place) / count
    return f"{minutes:.0f} min ago" if minutes >= 1 else f"{minutes * 60:.0f} s ago"
