"""The time of a firing as a picture: where everything lies, without any markup.

Times differ by orders of magnitude: an answer takes milliseconds, a retry waits for minutes. So the
axis is stretched: longer parts are longer in the picture, but not in proportion, and the shortest
part can still be seen.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.service.explaining import Explanation, Period, attempts_of_firing, length_text

WIDTH = 860
LEFT = 84
RIGHT = 18
TOP = 30
ROW = 34
BOTTOM = 26
SHORTEST = 14
"""Width of the shortest part."""

PROMPT = 20_000
"""Microseconds up to which a wait is nothing to be noted: the timer is on time."""

LEAD = 36
"""Width of the time by which a timer was claimed ahead: it matters little."""

MAX_PERIODS = 60
"""Periods that are drawn one by one. If there are more, the waits of an attempt become one."""

_CHARACTER = 6.9
"""Width of a character."""

_MARK = 5
"""Half of the width of a mark."""

_LABEL_GAP = 10
"""Distance between two labels of the axis."""

_KINDS = {
    AttemptOutcome.COMPLETED: "completed",
    AttemptOutcome.RESCHEDULED: "completed",
    AttemptOutcome.FAILED: "failed",
    AttemptOutcome.INTERRUPTED: "interrupted",
}

_APART = {WaitCause.ENDPOINT, WaitCause.RETRY_POLICY}
"""Causes that are not waits before an attempt."""

LEGEND = {
    "elapsed": "waiting for its instant",
    "prompt": "sent at once",
    "wait": "late: waiting to be sent",
    "completed": "call that succeeded",
    "failed": "call that failed",
    "interrupted": "call without a recorded answer",
    "running": "call under way",
    "retry": "wait of the retry policy",
    "planned": "planned",
}


class Bar(Struct, frozen=True):
    """A part of the time, in the row of its attempt. The label is around `label_x`, and empty if
    there is no room."""

    x: float
    y: float
    width: float
    kind: str
    words: str
    label: str
    label_x: float = 0


class Mark(Struct, frozen=True):
    """A moment: `created`, `claimed`, `sent`, `answered`, `canceled`."""

    x: float
    y: float
    kind: str
    words: str


class Line(Struct, frozen=True):
    """A moment that concerns all rows: `due` or `now`."""

    x: float
    kind: str
    label: str


class Tick(Struct, frozen=True):
    """A label of the axis. `anchor` is the part of it that is at the place, as in SVG."""

    x: float
    label: str
    anchor: str

    @property
    def extent(self) -> tuple[float, float]:
        width = len(self.label) * _CHARACTER
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return self.x - share * width, self.x + (1 - share) * width


class Row(Struct, frozen=True):
    y: float
    label: str


class Picture(Struct, frozen=True, kw_only=True):
    width: int = WIDTH
    height: int
    left: int = LEFT
    right: int = WIDTH - RIGHT
    title: str
    rows: Sequence[Row]
    bars: Sequence[Bar]
    marks: Sequence[Mark]
    lines: Sequence[Line]
    ticks: Sequence[Tick]
    legend: Sequence[tuple[str, str]]


class Axis:
    """From instants to places. Between two `cuts` time runs evenly. The time before `asked_at` is
    short in any case, if there is a later one."""

    def __init__(self, cuts: Iterable[Instant], asked_at: Instant | None = None) -> None:
        self.cuts = sorted(set(cuts))
        lengths = [to_at - from_at for from_at, to_at in pairwise(self.cuts)]
        has_lead = asked_at is not None and self.cuts[0] < asked_at and len(lengths) > 1
        lead = [float(LEAD)] if has_lead else []
        widths = lead + stretched(lengths[len(lead) :], WIDTH - LEFT - RIGHT - sum(lead))
        self._places = [float(LEFT)]
        for width in widths:
            self._places.append(self._places[-1] + width)

    def x(self, at: Instant) -> float:
        """Instants outside of the axis lie at its ends."""
        index = bisect_right(self.cuts, at) - 1
        if index < 0:
            return self._places[0]
        if index >= len(self.cuts) - 1:
            return self._places[-1]
        from_at, to_at = self.cuts[index], self.cuts[index + 1]
        share = (at - from_at) / (to_at - from_at)
        return self._places[index] + share * (self._places[index + 1] - self._places[index])


def stretched(lengths: Sequence[int], width: float = WIDTH - LEFT - RIGHT) -> list[float]:
    """Widths that add up to `width`, none below `SHORTEST` if there is room for that. A length that
    is four times as long gets about twice the room."""
    if not lengths:
        return []
    least = min(SHORTEST, width / len(lengths))
    rest = width - least * len(lengths)
    roots = [sqrt(length) for length in lengths]
    total = sum(roots) or 1.0
    return [least + rest * root / total for root in roots]


def picture_of(timer: Timer, explanation: Explanation, now: Instant) -> Picture:
    """The current firing of the timer."""
    drawing = _Drawing(timer, explanation, now)
    has_begun = bool(explanation.periods or explanation.attempts)
    return drawing.firing() if has_begun else drawing.waiting()


class _Drawing:
    def __init__(self, timer: Timer, explanation: Explanation, now: Instant) -> None:
        self._timer = timer
        # The explanation has its own reading of the clock, a moment later.
        self._now = explanation.until_at if explanation.periods else now
        self._attempts = {each.number: each for each in attempts_of_firing(timer)}
        self._periods = _drawn(explanation.periods)
        self._asked_at = explanation.asked_at
        self._is_over = timer.status.is_finished
        self._planned_at = explanation.next_attempt_at
        self._bars: list[Bar] = []
        self._marks: list[Mark] = []

    def waiting(self) -> Picture:
        """A timer that was not due yet, or that was canceled before."""
        timer = self._timer
        begun_at, words = timer.created_at, "created"
        if timer.status is TimerStatus.PENDING and timer.updated_at > timer.created_at:
            begun_at, words = timer.updated_at, "changed"
        until_at = timer.updated_at if self._is_over else self._now
        due_at = timer.due_at
        self._axis = Axis((begun_at, max(begun_at, until_at), max(begun_at, due_at)))
        self._bar(0, begun_at, until_at, "elapsed", "waited for its instant")
        if not self._is_over:
            self._bar(0, until_at, due_at, "planned", "left until it fires")
        self._mark(0, begun_at, words)
        if timer.status is TimerStatus.CANCELED:
            self._mark(0, until_at, "canceled")
        return self._picture([timer.status.label.capitalize()], due_at)

    def firing(self) -> Picture:
        numbers = sorted({_row_of(each) for each in self._periods} | set(self._attempts))
        planned_at = self._planned_at if self._attempts else None
        if planned_at is not None and planned_at > self._now:
            numbers = sorted({*numbers, max(self._attempts) + 1})
        cuts = [self._asked_at, *(each.to_at for each in self._periods)]
        claims = [each.claimed_at for each in self._attempts.values()]
        if self._timer.claimed_at is not None and not self._is_over:
            claims.append(self._timer.claimed_at)
        if claims and claims[0] < self._asked_at:
            cuts.append(claims[0])
        if planned_at is not None and planned_at > self._now:
            cuts += [self._now, planned_at]
        self._axis = Axis(cuts, self._asked_at)
        rows = {number: row for row, number in enumerate(numbers)}
        for period in self._periods:
            self._period(rows[_row_of(period)], period)
        for number, attempt in self._attempts.items():
            self._moments(rows[number], attempt)
        current = self._timer.attempt
        if not self._is_over and self._timer.claimed_at is not None and current in rows:
            self._mark(rows[current], self._timer.claimed_at, "claimed")
        if planned_at is not None and planned_at > self._now:
            self._bar(len(rows) - 1, self._now, planned_at, "planned", "left until the retry")
        return self._picture([f"Attempt {number}" for number in numbers], self._asked_at)

    def _period(self, row: int, period: Period) -> None:
        kind = "wait"
        if period.cause is WaitCause.RETRY_POLICY:
            kind = "retry"
        elif period.cause is WaitCause.ENDPOINT:
            made = self._attempts.get(period.attempt)
            kind = "running" if made is None else _KINDS[made.outcome]
        elif period.microseconds <= PROMPT:
            kind = "prompt"
        self._bar(row, period.from_at, period.to_at, kind, period.sentence)

    def _moments(self, row: int, attempt: Attempt) -> None:
        self._mark(row, attempt.claimed_at, "claimed")
        if attempt.sent_at is not None:
            self._mark(row, attempt.sent_at, "sent")
        if attempt.answered_at is not None:
            self._mark(row, attempt.answered_at, "answered")

    def _bar(self, row: int, from_at: Instant, to_at: Instant, kind: str, words: str) -> None:
        if to_at <= from_at:
            return
        x, end = self._axis.x(from_at), self._axis.x(to_at)
        length = length_text(to_at - from_at)
        told = f"{length}: {words}"
        self._bars.append(Bar(round(x, 1), TOP + ROW * row, round(end - x, 1), kind, told, length))

    def _labelled(self, bar: Bar) -> Bar:
        """The bar with its label where no mark lies on it, in the middle of the most room."""
        end = bar.x + bar.width
        edges = [bar.x]
        for mark in sorted(self._marks, key=lambda mark: mark.x):
            if mark.y == bar.y and bar.x - _MARK < mark.x < end + _MARK:
                edges += [mark.x - _MARK, mark.x + _MARK]
        edges.append(end)
        begin, end = max(
            zip(edges[::2], edges[1::2], strict=True), key=lambda free: free[1] - free[0]
        )
        if len(bar.label) * _CHARACTER >= end - begin - 6:
            return replace(bar, label="")
        return replace(bar, label_x=round((begin + end) / 2, 1))

    def _mark(self, row: int, at: Instant, kind: str) -> None:
        words = f"{kind} {_offset(at - self._asked_at)}"
        self._marks.append(Mark(round(self._axis.x(at), 1), TOP + ROW * row, kind, words))

    def _picture(self, labels: Sequence[str], due_at: Instant) -> Picture:
        lines = [Line(round(self._axis.x(due_at), 1), "due", "due")]
        if not self._is_over:
            now_x = round(self._axis.x(self._now), 1)
            is_apart = abs(now_x - lines[0].x) > 30
            lines.append(Line(now_x, "now", "now" if is_apart else ""))
        kinds = {bar.kind for bar in self._bars}
        return Picture(
            height=TOP + ROW * len(labels) + BOTTOM,
            title=f"Timeline: {', '.join(labels)}",
            rows=[Row(TOP + ROW * row, label) for row, label in enumerate(labels)],
            bars=[self._labelled(bar) for bar in self._bars],
            marks=self._marks,
            lines=lines,
            ticks=self._ticks(),
            legend=[(kind, words) for kind, words in LEGEND.items() if kind in kinds],
        )

    def _ticks(self) -> list[Tick]:
        """Labels of as many cuts as have room: the ends and the due instant first."""
        first, last = self._axis.cuts[0], self._axis.cuts[-1]
        fixed: list[Tick] = []
        for at in dict.fromkeys((last, self._asked_at, first)):
            anchor = "start" if at == first else "end" if at == last else "middle"
            tick = self._tick(at, anchor)
            if not any(_overlap(tick, other) for other in fixed):
                fixed.append(tick)
        ticks, free = list(fixed), 0.0
        for at in self._axis.cuts:
            if self._axis.x(at) < free:
                continue
            tick = self._tick(at, "middle")
            if not any(_overlap(tick, other) for other in (*fixed, ticks[-1])):
                ticks.append(tick)
                free = tick.extent[1] + _LABEL_GAP
        return sorted(ticks, key=lambda tick: tick.x)

    def _tick(self, at: Instant, anchor: str) -> Tick:
        return Tick(round(self._axis.x(at), 1), _offset(at - self._asked_at), anchor)


def _drawn(periods: Sequence[Period]) -> Sequence[Period]:
    """The periods, or fewer that cover the same time."""
    if len(periods) <= MAX_PERIODS:
        return periods
    drawn: list[Period] = []
    for period in periods:
        last = drawn[-1] if drawn else None
        if last is None or last.attempt != period.attempt or {last.cause, period.cause} & _APART:
            drawn.append(period)
        else:
            words = "Several waits, one after the other."
            drawn[-1] = replace(last, to_at=period.to_at, sentence=words)
    return drawn


def _overlap(one: Tick, other: Tick) -> bool:
    (from_x, to_x), (other_from, other_to) = one.extent, other.extent
    return from_x < other_to + _LABEL_GAP and other_from < to_x + _LABEL_GAP


def _row_of(period: Period) -> int:
    """The attempt in whose row a period is drawn: a retry waits for the next one."""
    return period.attempt + (period.cause is WaitCause.RETRY_POLICY)


def _offset(microseconds: int) -> str:
    """A moment as the distance from the instant at which the timer was due."""
    if microseconds == 0:
        return "0"
    sign = "+" if microseconds > 0 else "-"
    return f"{sign}{length_text(abs(microseconds))}"
