"""How late timers were, against the instant that each of them was due."""

from msgspec.structs import replace

from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import Epoch
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.domain.transitions import Redrive, claim_of, claimed, hand_back, redriven, settled
from duetime.engine.deliveries import Lateness, lateness_of
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT


def lateness_ms(timer: Timer, sent_at: Instant) -> float | None:
    lateness = Lateness()
    claim = claim_of(claimed(timer, epoch=Epoch(1), now=sent_at))
    lateness.record(lateness_of(claim, sent_at), 0.0)
    return lateness.percentile_ms(99, 0.0)


def test_a_redriven_timer_is_late_against_the_instant_it_was_redriven() -> None:
    attempt = Attempt(number=1, due_at=START_AT, claimed_at=START_AT, error="HTTP 500")
    failed = replace(
        make_timer(execute_at=START_AT), status=TimerStatus.FAILED, attempts=(attempt,)
    )
    two_days_later = plus_ms(START_AT, 2 * 86_400_000)
    timer = redriven(failed, Redrive(key=failed.key, delivery_id="again"), two_days_later)
    assert lateness_ms(timer, plus_ms(two_days_later, 7)) == 7


def test_the_time_for_which_a_timer_was_handed_back_counts() -> None:
    timer = claimed(make_timer(execute_at=START_AT), epoch=Epoch(1), now=START_AT)
    back = hand_back(claim_of(timer), due_at=plus_ms(START_AT, 250), now=START_AT)
    assert lateness_ms(settled(timer, back), plus_ms(START_AT, 260)) == 260


def test_a_timer_that_was_due_before_it_was_created_is_late_since_then() -> None:
    """An import brings timers that were due elsewhere, years ago even."""
    timer = make_timer(execute_at=plus_ms(START_AT, -86_400_000), created_at=START_AT)
    assert lateness_ms(timer, plus_ms(START_AT, 3)) == 3
