"""The outcome of an attempt, as this release and later ones have stored it."""

import msgspec
import pytest

from duetime.domain.outcome import INTERRUPTED, AttemptOutcome
from duetime.domain.timer import Attempt

STORED = {"number": 2, "due_at": 1, "claimed_at": 2}


def read(**members: object) -> Attempt:
    return msgspec.json.decode(msgspec.json.encode(STORED | members), type=Attempt)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, AttemptOutcome.COMPLETED),
        ("HTTP 500", AttemptOutcome.FAILED),
        (INTERRUPTED, AttemptOutcome.INTERRUPTED),
    ],
)
def test_the_error_shows_the_outcome_of_an_attempt_without_a_recorded_one(
    error: str | None, told: AttemptOutcome
) -> None:
    members = {} if error is None else {"error": error}
    attempt = read(**members)
    assert attempt.outcome is told
    # Written again it is unchanged: no outcome is made up.
    assert msgspec.to_builtins(attempt) == STORED | members


@pytest.mark.parametrize("outcome", AttemptOutcome)
def test_a_recorded_outcome_counts_whatever_the_error(outcome: AttemptOutcome) -> None:
    for error in (None, "HTTP 500", INTERRUPTED):
        attempt = read(outcome=outcome, error=error)
        assert attempt.outcome is outcome
        assert msgspec.to_builtins(attempt)["outcome"] == outcome.value


def test_the_stored_words_never_change() -> None:
    assert list(AttemptOutcome) == ["completed", "rescheduled", "failed", "interrupted"]


def test_an_outcome_of_a_later_release_is_ignored() -> None:
    assert read(outcome="failed", error="HTTP 500", unheard_of=[1]) == read(
        outcome="failed", error="HTTP 500"
    )


def test_a_word_of_a_later_release_does_not_make_the_timer_unreadable() -> None:
    assert read(outcome="expired", error="HTTP 500").outcome is AttemptOutcome.FAILED
    later = read(outcome="expired")
    assert later.outcome is AttemptOutcome.COMPLETED
    assert msgspec.to_builtins(later) == STORED | {"outcome": "expired"}
