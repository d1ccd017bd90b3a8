"""The picture of a firing: where its parts lie, and what they say."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duetime.domain.instants import Instant, plus_ms
from duetime.domain.outcome import INTERRUPTED
from duetime.domain.timer import Attempt, Timer, TimerStatus, Wait
from duetime.ports.endpoints import FiringReport
from duetime.service.explaining.explaining import explanation_of
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT
from duetime.web.pages.timer.timeline import (
    LEFT,
    RIGHT,
    SHORTEST,
    WIDTH,
    Bar,
    Picture,
    picture_of,
    stretched,
)
from tests.unit.service.explaining.any_timers import REPORTS, SHORT, timers

OURS = FiringReport(node="one", owns_shard=True, owner="one")


def at(ms: float) -> Instant:
    return plus_ms(START_AT, ms)


def drawn(timer: Timer, now: Instant, report: FiringReport = OURS) -> Picture:
    return picture_of(timer, explanation_of(timer, report, now), now)


def pending(**changes: object) -> Timer:
    timer = make_timer(execute_at=START_AT, created_at=at(-60_000))
    return replace(timer, **changes)


def failure(number: int, due_ms: float, **more: object) -> Attempt:
    return Attempt(
        number=number,
        due_at=at(due_ms),
        claimed_at=at(due_ms),
        sent_at=at(due_ms),
        answered_at=at(due_ms + 100),
        error="HTTP 503",
        **more,  # type: ignore[arg-type]
    )


def kinds(picture: Picture, row: int) -> list[str]:
    return [bar.kind for bar in row_of(picture, row)]


def row_of(picture: Picture, row: int) -> list[Bar]:
    return sorted((bar for bar in picture.bars if bar.y == picture.rows[row].y), key=lambda b: b.x)


@given(timers(), REPORTS, SHORT)
def test_everything_lies_within_the_picture(timer: Timer, report: FiringReport, now: int) -> None:
    picture = drawn(timer, Instant(START_AT + now), report)
    left, right = LEFT - 0.1, WIDTH - RIGHT + 0.1
    assert all(left <= bar.x and bar.x + bar.width <= right for bar in picture.bars)
    places = [mark.x for mark in picture.marks] + [line.x for line in picture.lines]
    assert all(left <= x <= right for x in places)
    heights = [bar.y for bar in picture.bars] + [mark.y for mark in picture.marks]
    assert all(0 <= y < picture.height - 24 for y in heights)
    for row in range(len(picture.rows)):
        bars = row_of(picture, row)
        for one, other in pairwise(bars):
            assert one.x + one.width <= other.x + 0.2
    for bar in picture.bars:
        half = len(bar.label) * 3
        if bar.label:
            assert bar.x <= bar.label_x - half
            assert bar.label_x + half <= bar.x + bar.width
            ours = [mark.x for mark in picture.marks if mark.y == bar.y]
            assert all(abs(x - bar.label_x) > half + 4 for x in ours)
    ends = [tick.extent for tick in picture.ticks]
    for (_, end), (begin, _) in pairwise(ends):
        assert end < begin


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40))
def test_the_shortest_part_can_be_seen_and_the_longest_is_the_longest(lengths: list[int]) -> None:
    widths = stretched(lengths)
    assert sum(widths) == pytest.approx(WIDTH - LEFT - RIGHT)
    assert min(widths) >= SHORTEST
    assert sorted(range(len(lengths)), key=lambda i: (lengths[i], i)) == sorted(
        range(len(lengths)), key=lambda i: (widths[i], i)
    )


def test_a_timer_that_waits_for_its_instant_shows_what_is_left() -> None:
    picture = drawn(pending(), at(-45_000))
    assert [row.label for row in picture.rows] == ["Pending"]
    assert kinds(picture, 0) == ["elapsed", "planned"]
    assert [bar.label for bar in picture.bars] == ["15.00 s", "45.00 s"]
    assert [(mark.kind, mark.words) for mark in picture.marks] == [("created", "created -1m")]
    assert [line.label for line in picture.lines] == ["due", "now"]
    assert [tick.label for tick in picture.ticks] == ["-1m", "-45.00 s", "0"]


def test_a_canceled_timer_ends_before_its_instant() -> None:
    timer = pending(status=TimerStatus.CANCELED, updated_at=at(-20_000))
    picture = drawn(timer, at(99_000))
    assert kinds(picture, 0) == ["elapsed"]
    assert [mark.kind for mark in picture.marks] == ["created", "canceled"]
    assert [line.kind for line in picture.lines] == ["due"], "the present does not matter any more"


def test_retries_follow_each_other_in_rows_and_the_next_one_is_planned() -> None:
    timer = pending(
        attempts=(failure(1, 0), failure(2, 30_000)), attempt=2, failures=2, due_at=at(90_000)
    )
    picture = drawn(timer, at(60_000))
    assert [row.label for row in picture.rows] == ["Attempt 1", "Attempt 2", "Attempt 3"]
    assert kinds(picture, 0) == ["failed"]
    assert kinds(picture, 1) == ["retry", "failed"]
    assert kinds(picture, 2) == ["retry", "planned"]
    first, retry = row_of(picture, 0)[0], row_of(picture, 1)[0]
    assert retry.x == pytest.approx(first.x + first.width, abs=0.2)
    assert retry.words == "29.90 s: Attempt 1 failed (HTTP 503); its retry was planned for later."
    assert dict(picture.legend).keys() == {"failed", "retry", "planned"}


def test_the_present_is_that_of_the_explanation() -> None:
    timer = pending(attempts=(failure(1, 0),), attempt=1, failures=1, due_at=at(90_000))
    picture = picture_of(timer, explanation_of(timer, OURS, at(60_000.4)), at(60_000))
    retry, planned = row_of(picture, 1)
    assert retry.x + retry.width == pytest.approx(planned.x, abs=0.2)


def test_waits_are_told_by_their_cause() -> None:
    made = Attempt(
        number=1,
        due_at=START_AT,
        claimed_at=at(-50),
        sent_at=at(5_000),
        answered_at=at(5_020),
        waits=(Wait("breaker", 5_000_000),),
    )
    timer = pending(status=TimerStatus.COMPLETED, attempts=(made,), attempt=1)
    picture = drawn(timer, at(60_000))
    assert kinds(picture, 0) == ["wait", "completed"]
    assert picture.bars[0].words.startswith("5.00 s: The breaker of ")
    assert [mark.words for mark in picture.marks] == [
        "claimed -50.0 ms",
        "sent +5.00 s",
        "answered +5.02 s",
    ]
    due = next(line for line in picture.lines if line.kind == "due")
    assert picture.marks[0].x < due.x, "it was claimed ahead"


def test_a_call_under_way_grows_until_now() -> None:
    timer = pending(status=TimerStatus.EXECUTING, attempt=1, claimed_at=START_AT)
    report = replace(OURS, sent_at=at(1))
    picture = drawn(timer, at(4_001), report)
    assert kinds(picture, 0) == ["prompt", "running"]
    assert picture.bars[-1].label == "4.00 s"
    assert picture.lines[-1].kind == "now"


def test_a_call_without_a_recorded_answer_is_no_failure() -> None:
    lost = Attempt(number=1, due_at=START_AT, claimed_at=START_AT, error=INTERRUPTED)
    again = Attempt(
        number=2, due_at=START_AT, claimed_at=at(9_000), sent_at=at(9_000), answered_at=at(9_010)
    )
    timer = pending(status=TimerStatus.COMPLETED, attempts=(lost, again), attempt=2)
    picture = drawn(timer, at(60_000))
    assert "failed" not in dict(picture.legend)
    assert picture.bars[-1].kind == "completed"


def test_the_waits_of_many_attempts_are_drawn_as_one_each() -> None:
    causes = ("lane", "slots", "breaker", "quota", "store", "claim")
    waits = tuple(Wait(cause, 1_000_000) for cause in causes)
    made = tuple(
        Attempt(
            number=number,
            due_at=at(number * 60_000),
            claimed_at=at(number * 60_000),
            sent_at=at(number * 60_000 + 6_000),
            answered_at=at(number * 60_000 + 6_100),
            error="HTTP 503",
            waits=waits,
        )
        for number in range(1, 21)
    )
    timer = pending(status=TimerStatus.FAILED, attempts=made, attempt=20, last_error="HTTP 503")
    picture = drawn(timer, at(9_000_000))
    assert kinds(picture, 0) == ["wait", "failed"]
    assert kinds(picture, 19) == ["retry", "wait", "failed"]
    assert row_of(picture, 19)[1].words == "6.00 s: Several waits, one after the other."
