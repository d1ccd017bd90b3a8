"""Attempts, failures and durations of each endpoint in the last quarter of an hour."""

import pytest

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.outcome import Completed, Failed
from duetime.engine.observing import endpoint_figures
from duetime.engine.observing.endpoint_figures import EndpointCounts
from duetime.testing import Fail, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, SLOW, EngineBench

NOW = Instant(1_800_000_000_000_000)
MINUTE = 60_000_000


def observe(counts: EndpointCounts, ms: float, endpoint: str = GOOD, at: int = NOW) -> None:
    took = round(ms * MICROSECONDS_PER_MS)
    outcome = Completed(sent_at=Instant(at - took), answered_at=Instant(at))
    counts.observe(endpoint, outcome, took)


@pytest.mark.parametrize("ms", [0.1, 0.4, 1.0, 7.0, 33.0, 250.0, 4_000.0, 30_000.0])
def test_percentiles_are_close_to_the_durations(ms: float) -> None:
    counts = EndpointCounts()
    for _ in range(100):
        observe(counts, ms)
    figures = counts.figures_of(GOOD, NOW)
    assert figures is not None
    assert figures.attempts == 100
    assert figures.p50_ms == pytest.approx(ms, rel=0.3, abs=0.2)
    assert figures.p50_ms <= figures.p99_ms <= 1.5 * ms + 0.3


def test_one_slow_attempt_in_a_hundred_shows_in_p99_only() -> None:
    counts = EndpointCounts()
    for _ in range(97):
        observe(counts, 10)
    for _ in range(3):
        observe(counts, 2_000)
    figures = counts.figures_of(GOOD, NOW)
    assert figures is not None
    assert 7 < figures.p50_ms < 14
    assert 1_400 < figures.p99_ms < 2_900


def test_attempts_are_forgotten_after_a_quarter_of_an_hour() -> None:
    counts = EndpointCounts()
    for minute in range(20):
        observe(counts, 1, at=NOW + minute * MINUTE)
    figures = counts.figures_of(GOOD, Instant(NOW + 19 * MINUTE))
    assert figures is not None
    assert figures.attempts == 15
    late = Instant(NOW + 40 * MINUTE)
    assert counts.figures_of(GOOD, late) is None
    assert not counts.endpoints(late)
    observe(counts, 1, at=late)
    assert counts.endpoints(late) == [GOOD]


def test_odd_durations_and_a_clock_that_is_set_back_do_no_harm() -> None:
    counts = EndpointCounts()
    for at in (NOW, NOW - 5 * MINUTE, NOW):
        observe(counts, -50, at=at)
        observe(counts, 10**9, at=at)
    figures = counts.figures_of(GOOD, NOW)
    assert figures is not None
    assert figures.attempts == 6


def test_the_number_of_endpoints_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_figures, "MAX_ENDPOINTS", 10)
    counts = EndpointCounts()
    for number in range(50):
        observe(counts, 1, endpoint=f"http://{number}")
    assert len(counts.endpoints(NOW)) == 10
    later = NOW + 16 * MINUTE
    observe(counts, 1, endpoint="http://later", at=later)
    assert counts.endpoints(Instant(later)) == ["http://later"]


def test_only_failures_that_blame_the_endpoint_count() -> None:
    counts = EndpointCounts()
    for blames in (True, False):
        failed = Failed(sent_at=NOW, answered_at=NOW, error="no", blames_endpoint=blames)
        counts.observe(GOOD, failed, 0)
    figures = counts.figures_of(GOOD, NOW)
    assert figures is not None
    assert (figures.attempts, figures.failures) == (2, 1)


@on_virtual_time
async def test_the_engine_counts_its_attempts() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(after_seconds=2))
    bench.destination.script(GOOD, Fail(after_seconds=0.05))
    await bench.start()
    await bench.create_many("slow", [bench.at(1)] * 3, url=SLOW)
    await bench.create_many("bad", [bench.at(1)] * 2)
    await bench.clock.sleep(5)
    assert set(bench.engine.endpoint_names()) == {SLOW, GOOD}
    slow, bad = bench.engine.status_of(SLOW).figures, bench.engine.status_of(GOOD).figures
    assert slow is not None
    assert bad is not None
    assert (slow.attempts, slow.failures, bad.attempts, bad.failures) == (3, 0, 2, 2)
    assert 1_400 < slow.p50_ms < 2_900
    await bench.clock.sleep(20 * 60)
    assert not bench.engine.endpoint_names()
