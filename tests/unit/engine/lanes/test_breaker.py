"""Outcomes open and close an endpoint, and are remembered for a while."""

from msgspec.structs import replace
from structlog.typing import EventDict

from duetime.domain.outcome import Completed, Failed, Interrupted, Outcome, Rescheduled
from duetime.engine.lanes.breaker import MAX_REMEMBERED, REMEMBERED_SECONDS, Breaker, IdleBreakers
from duetime.pauses import Pauses
from duetime.testing import VirtualClock
from duetime.testing.virtual_clock import START_AT

DOWN = Failed(sent_at=START_AT, answered_at=START_AT, error="HTTP 503")
REFUSED = Failed(sent_at=START_AT, answered_at=START_AT, error="HTTP 404", blames_endpoint=False)
DONE = Completed(sent_at=START_AT, answered_at=START_AT)
AGAIN = Rescheduled(sent_at=START_AT, answered_at=START_AT, next_execute_at=START_AT)
GONE = Interrupted(sent_at=START_AT, answered_at=START_AT, error="closed")


class BreakerBench:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.pauses = Pauses()
        self.breaker = Breaker("https://one.example", self.clock, self.pauses)

    def hear(self, *outcomes: Outcome, in_seconds: float = 0.0) -> None:
        self.clock.advance(in_seconds)
        self.pauses.begin(self.clock.monotonic())
        for outcome in outcomes:
            self.breaker.heard(outcome, self.clock.monotonic())

    def open(self) -> None:
        self.hear(DOWN)
        self.hear(*[DOWN] * 19, in_seconds=5)


def test_failures_of_one_moment_do_not_open_it_however_many() -> None:
    bench = BreakerBench()
    bench.hear(*[DOWN] * 10_000)
    bench.hear(DOWN, in_seconds=4.9)
    assert not bench.breaker.is_open


def test_twenty_failures_in_a_row_over_five_seconds_open_it() -> None:
    bench = BreakerBench()
    bench.hear(DOWN)
    bench.hear(*[DOWN] * 18, in_seconds=5)
    assert bench.breaker.opened_at is None
    bench.hear(DOWN)
    assert bench.breaker.is_open
    assert bench.breaker.failures == 20
    assert bench.breaker.opened_at == bench.clock.now()


def test_a_failure_that_says_that_the_endpoint_is_away_opens_it_at_once() -> None:
    bench = BreakerBench()
    bench.hear(replace(DOWN, is_away=True))
    assert bench.breaker.is_open
    bench.hear(DONE)
    assert not bench.breaker.is_open


def test_any_sign_of_life_makes_the_row_start_over() -> None:
    for sign in (DONE, AGAIN, REFUSED):
        bench = BreakerBench()
        bench.hear(*[DOWN] * 19)
        bench.hear(sign, *[DOWN] * 19, in_seconds=10)
        assert not bench.breaker.is_open
        assert bench.breaker.failures == 19


def test_an_interrupted_attempt_does_not_count() -> None:
    bench = BreakerBench()
    bench.hear(*[DOWN] * 19)
    bench.hear(GONE, DOWN, in_seconds=5)
    assert bench.breaker.is_open
    bench.hear(GONE)
    assert bench.breaker.is_open


def test_one_success_closes_it_and_each_transition_is_logged_once(logs: list[EventDict]) -> None:
    bench = BreakerBench()
    bench.open()
    bench.hear(*[DOWN] * 100, in_seconds=60)
    bench.hear(DONE, DONE, in_seconds=30)
    assert not bench.breaker.is_open
    assert bench.breaker.opened_at is None
    opened, closed = logs
    assert opened == {
        "event": "endpoint.opened",
        "log_level": "warning",
        "endpoint": "https://one.example",
        "failures": 20,
        "error": "HTTP 503",
    }
    assert closed == {
        "event": "endpoint.closed",
        "log_level": "info",
        "endpoint": "https://one.example",
        "why": "answered",
        "open_seconds": 90.0,
    }


def test_the_breaker_of_an_idle_endpoint_is_kept_for_a_while() -> None:
    bench = BreakerBench()
    idle = IdleBreakers(bench.clock, bench.pauses)
    bench.open()
    idle.put(bench.breaker, bench.clock.monotonic())
    bench.clock.advance(REMEMBERED_SECONDS - 1)
    assert idle.remembered(bench.clock.monotonic()) == [bench.breaker]
    assert idle.take("https://one.example") is bench.breaker
    assert not idle.take("https://other.example").is_open


def test_an_idle_endpoint_is_forgotten_in_the_end_and_that_is_logged(logs: list[EventDict]) -> None:
    bench = BreakerBench()
    idle = IdleBreakers(bench.clock, bench.pauses)
    bench.open()
    idle.put(bench.breaker, bench.clock.monotonic())
    bench.clock.advance(REMEMBERED_SECONDS)
    assert idle.remembered(bench.clock.monotonic()) == []
    assert (logs[-1]["event"], logs[-1]["why"]) == ("endpoint.closed", "idle")
    assert not idle.take("https://one.example").is_open


def test_an_endpoint_that_never_failed_needs_no_memory() -> None:
    bench = BreakerBench()
    idle = IdleBreakers(bench.clock, bench.pauses)
    bench.hear(DONE)
    idle.put(bench.breaker, 0.0)
    assert idle.remembered(0.0) == []


def test_a_bounded_number_is_remembered_and_the_closed_ones_go_first() -> None:
    bench = BreakerBench()
    idle = IdleBreakers(bench.clock, bench.pauses)
    bench.open()
    idle.put(bench.breaker, bench.clock.monotonic())
    for number in range(MAX_REMEMBERED + 5):
        breaker = Breaker(f"https://{number}.example", bench.clock, bench.pauses)
        breaker.heard(DOWN, bench.clock.monotonic())
        idle.put(breaker, bench.clock.monotonic())
    remembered = idle.remembered(bench.clock.monotonic())
    assert len(remembered) == MAX_REMEMBERED
    assert remembered[0] is bench.breaker
    assert remembered[1].endpoint == "https://6.example"


def test_an_old_breaker_is_forgotten_without_a_list_being_requested() -> None:
    bench = BreakerBench()
    idle = IdleBreakers(bench.clock, bench.pauses)
    bench.open()
    idle.put(bench.breaker, bench.clock.monotonic())
    bench.clock.advance(REMEMBERED_SECONDS)
    assert not idle.take("https://one.example").is_open


def test_an_old_breaker_is_forgotten_when_another_endpoint_becomes_idle() -> None:
    bench = BreakerBench()
    idle = IdleBreakers(bench.clock, bench.pauses)
    bench.open()
    idle.put(bench.breaker, bench.clock.monotonic())
    bench.clock.advance(REMEMBERED_SECONDS)
    idle.put(Breaker("https://two.example", bench.clock, bench.pauses), bench.clock.monotonic())
    assert not bench.breaker.is_open
