"""How far the store's clock is away, and when that is said."""

import pytest
from structlog.typing import EventDict

from duetime.domain.instants import Instant, plus_ms
from duetime.engine.clocks.clock_watch import ClockWatch
from duetime.testing.virtual_clock import START_AT

LIMIT_MS = 500.0


class Measurements:
    """A store whose clock is off, asked once a second over a line that takes its time."""

    def __init__(self) -> None:
        self.watch = ClockWatch(LIMIT_MS)
        self._now_seconds = 0.0

    def measure(
        self, ahead_ms: float, *, takes_ms: float = 2.0, share: float = 0.5, times: int = 1
    ) -> None:
        """`share` of the time goes by before the store reads its clock."""
        for _ in range(times):
            self._now_seconds += 1
            asked_at = plus_ms(START_AT, self._now_seconds * 1_000)
            answered_at = plus_ms(asked_at, takes_ms)
            store_now = plus_ms(asked_at, takes_ms * share + ahead_ms)
            self.watch.measured(asked_at, answered_at, store_now, self._now_seconds)


def said(logs: list[EventDict]) -> list[float]:
    return [entry["store_ahead_ms"] for entry in logs if entry["event"] == "clock.skewed"]


def test_nothing_is_known_before_the_first_measurement() -> None:
    watch = ClockWatch(LIMIT_MS)
    assert watch.offset_ms is None
    assert not watch.is_skewed


@pytest.mark.parametrize("ahead_ms", [-1_200.0, -20.0, 0.0, 20.0, 1_200.0])
def test_the_offset_is_how_far_the_store_is_ahead(ahead_ms: float) -> None:
    measurements = Measurements()
    measurements.measure(ahead_ms)
    assert measurements.watch.offset_ms == ahead_ms
    assert measurements.watch.is_skewed == (abs(ahead_ms) > LIMIT_MS)


def test_the_quickest_answer_counts_most() -> None:
    measurements = Measurements()
    measurements.measure(100, takes_ms=400, share=0.0)
    assert measurements.watch.offset_ms == -100
    measurements.measure(100, takes_ms=1)
    measurements.measure(100, takes_ms=400, share=1.0)
    assert measurements.watch.offset_ms == 100


def test_a_slow_answer_alone_does_not_make_a_clock_look_wrong() -> None:
    measurements = Measurements()
    measurements.measure(0, takes_ms=4_000, share=1.0)
    assert not measurements.watch.is_skewed


def test_slow_answers_do_not_displace_precise_measurements() -> None:
    measurements = Measurements()
    measurements.measure(30)
    measurements.measure(30, takes_ms=4_000, share=1.0)
    assert measurements.watch.offset_ms == 30


def test_old_measurements_are_forgotten() -> None:
    measurements = Measurements()
    measurements.measure(-300, takes_ms=1)
    measurements.measure(100, takes_ms=2, times=20)
    assert measurements.watch.offset_ms == 100


def test_a_clock_that_is_set_right_is_right_at_once() -> None:
    measurements = Measurements()
    skewed = []
    for ahead_ms, takes_ms in ((3_000, 1), (3_000, 1), (0, 20)):
        measurements.measure(ahead_ms, takes_ms=takes_ms)
        skewed.append(measurements.watch.is_skewed)
    assert skewed == [True, True, False]
    assert measurements.watch.offset_ms == 0


def test_a_clock_that_is_set_wrong_is_noticed_at_once() -> None:
    measurements = Measurements()
    measurements.measure(0, takes_ms=1, times=5)
    measurements.measure(-3_000, takes_ms=20)
    assert measurements.watch.is_skewed
    assert measurements.watch.offset_ms == -3_000


def test_a_wall_clock_that_is_set_during_a_measurement_decides_nothing() -> None:
    watch = ClockWatch(LIMIT_MS)
    watch.measured(START_AT, Instant(START_AT - 60_000_000), START_AT, 1.0)
    assert not watch.is_skewed


def test_a_skewed_clock_is_reported_once_a_minute(logs: list[EventDict]) -> None:
    measurements = Measurements()
    measurements.measure(0, times=10)
    assert said(logs) == []
    measurements.measure(700, times=59)
    assert said(logs) == [700]
    measurements.measure(700, times=60)
    assert said(logs) == [700, 700]
