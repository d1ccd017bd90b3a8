"""Every path of a timer's life."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.callback import HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch
from duetime.domain.limits import MAX_ATTEMPTS_REMEMBERED
from duetime.domain.outcome import (
    INTERRUPTED,
    AttemptOutcome,
    Completed,
    Failed,
    Interrupted,
    Outcome,
    Rescheduled,
)
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Settlement
from duetime.testing.store_contract.steps import at
from duetime.testing.timers import make_timer

POLICY = RetryPolicy(max_retries=2, initial_interval_ms=10_000, max_duration_ms=60_000)


def executing(timer: Timer) -> Timer:
    return transitions.claimed(timer, epoch=Epoch(7), now=at(0.5))


def claim_of(timer: Timer) -> Claim:
    return transitions.claim_of(executing(timer))


def settlement_of(claim: Claim, outcome: Outcome) -> Settlement:
    return transitions.settlement_of(claim, outcome, chance=0.0, new_delivery_id=lambda: "next")


def completed() -> Completed:
    return Completed(sent_at=at(1), answered_at=at(2))


def rescheduled() -> Rescheduled:
    return Rescheduled(sent_at=at(1), answered_at=at(2), next_execute_at=at(90))


def interrupted() -> Interrupted:
    return Interrupted(sent_at=at(1), answered_at=at(2), error="connection reset")


def failed(retry_after_ms: int | None = None, *, answered_at: Instant | None = None) -> Failed:
    answered_at = at(2) if answered_at is None else answered_at
    return Failed(
        sent_at=at(1), answered_at=answered_at, error="HTTP 500", retry_after_ms=retry_after_ms
    )


def attempts(count: int) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(number=n, due_at=at(n), claimed_at=at(n), error="x") for n in range(1, count + 1)
    )


def test_claimed() -> None:
    timer = make_timer()
    claimed = executing(timer)
    assert claimed == replace(
        timer,
        status=TimerStatus.EXECUTING,
        attempt=1,
        claim_number=1,
        epoch=Epoch(7),
        claimed_at=at(0.5),
    )


def test_a_claim_has_everything_that_delivery_and_settlement_need() -> None:
    timer = make_timer(retry_policy=POLICY, correlation_id="c")
    claim = claim_of(timer)
    assert (claim.namespace, claim.id, claim.shard) == (*timer.key, timer.shard)
    assert (claim.attempt, claim.epoch, claim.claimed_at) == (1, 7, at(0.5))
    assert (claim.execute_at, claim.due_at) == (timer.execute_at, timer.due_at)
    assert (claim.callback, claim.retry_policy) == (timer.callback, POLICY)
    assert (claim.delivery_id, claim.correlation_id) == (timer.delivery_id, "c")


def test_completed() -> None:
    timer = executing(replace(make_timer(), last_error="before", failures=1, attempt=1))
    result = transitions.settled(timer, settlement_of(transitions.claim_of(timer), completed()))
    assert result.status is TimerStatus.COMPLETED
    assert result.executed_at == result.updated_at == at(2)
    assert result.last_error is None
    assert result.claimed_at is None
    assert (result.attempt, result.failures) == (2, 1)
    expected = Attempt(
        number=2,
        due_at=timer.due_at,
        claimed_at=at(0.5),
        sent_at=at(1),
        answered_at=at(2),
        recorded_outcome=AttemptOutcome.COMPLETED,
    )
    assert result.attempts == (expected,)


def test_failed_without_a_policy() -> None:
    timer = executing(make_timer())
    result = transitions.settled(timer, settlement_of(transitions.claim_of(timer), failed()))
    assert result.status is TimerStatus.FAILED
    assert result.last_error == "HTTP 500"
    assert result.failures == 1
    assert result.executed_at == result.updated_at == at(2)
    assert [attempt.error for attempt in result.attempts] == ["HTTP 500"]


def test_a_final_failure_is_not_retried() -> None:
    timer = executing(make_timer(retry_policy=POLICY))
    settlement = settlement_of(transitions.claim_of(timer), replace(failed(), is_final=True))
    assert settlement.status is TimerStatus.FAILED
    assert (settlement.attempt, settlement.failures) == (1, 1)
    assert settlement.last_error == "HTTP 500"


def test_failed_with_retries_left() -> None:
    timer = executing(make_timer(retry_policy=POLICY))
    result = transitions.settled(timer, settlement_of(transitions.claim_of(timer), failed()))
    assert result.status is TimerStatus.PENDING
    assert (result.execute_at, result.due_at) == (timer.execute_at, at(12))
    assert (result.attempt, result.failures) == (1, 1)
    assert result.delivery_id == timer.delivery_id
    assert result.last_error == "HTTP 500"
    assert result.executed_at is None


@pytest.mark.parametrize(
    ("failures", "status"), [(1, TimerStatus.PENDING), (2, TimerStatus.FAILED)]
)
def test_the_last_retry(failures: int, status: TimerStatus) -> None:
    timer = replace(make_timer(retry_policy=POLICY), failures=failures, attempt=failures)
    assert settlement_of(claim_of(timer), failed()).status is status


@pytest.mark.parametrize(
    ("answered_at", "status"), [(at(51), TimerStatus.PENDING), (at(51.001), TimerStatus.FAILED)]
)
def test_no_retry_is_planned_beyond_the_policys_duration(
    answered_at: Instant, status: TimerStatus
) -> None:
    claim = claim_of(make_timer(retry_policy=POLICY))
    assert settlement_of(claim, failed(answered_at=answered_at)).status is status


def test_a_timer_that_an_outage_made_late_has_its_retries() -> None:
    late = claim_of(make_timer(retry_policy=POLICY))
    sent = Failed(sent_at=at(100_000), answered_at=at(100_001), error="HTTP 500")
    first = settlement_of(late, sent)
    assert first.status is TimerStatus.PENDING
    again = replace(late, attempt=2, attempts=first.attempts)
    too_late = Failed(sent_at=at(100_050), answered_at=at(100_051), error="HTTP 500")
    assert settlement_of(again, too_late).status is TimerStatus.FAILED


def test_no_retry_is_planned_before_the_instant_although_the_clock_was_set_back() -> None:
    timer = make_timer(retry_policy=POLICY, execute_at=at(1_000))
    set_back = Failed(sent_at=at(3), answered_at=at(4), error="HTTP 500")
    assert settlement_of(claim_of(timer), set_back).due_at == at(1_000)


def test_a_retry_waits_as_long_as_the_endpoint_asks() -> None:
    claim = claim_of(make_timer(retry_policy=POLICY))
    assert settlement_of(claim, failed(retry_after_ms=30_000)).due_at == at(32)


def test_only_real_failures_use_up_retries() -> None:
    timer = replace(make_timer(retry_policy=POLICY), attempt=50)
    settlement = settlement_of(claim_of(timer), failed())
    assert settlement.status is TimerStatus.PENDING
    assert (settlement.attempt, settlement.failures) == (51, 1)


def test_rescheduled() -> None:
    timer = executing(replace(make_timer(retry_policy=POLICY), attempt=3, failures=2))
    result = transitions.settled(timer, settlement_of(transitions.claim_of(timer), rescheduled()))
    assert result.status is TimerStatus.PENDING
    assert result.execute_at == result.due_at == at(90)
    assert (result.attempt, result.failures, result.delivery_id) == (0, 0, "next")
    assert result.last_error is None
    assert [attempt.number for attempt in result.attempts] == [4]


@pytest.mark.parametrize(
    ("outcome", "told", "error"),
    [
        (completed(), AttemptOutcome.COMPLETED, None),
        (rescheduled(), AttemptOutcome.RESCHEDULED, None),
        (failed(), AttemptOutcome.FAILED, "HTTP 500"),
        (interrupted(), AttemptOutcome.INTERRUPTED, "connection reset"),
    ],
)
def test_an_attempt_is_remembered_with_its_outcome(
    outcome: Outcome, told: AttemptOutcome, error: str | None
) -> None:
    for policy in (None, POLICY):
        (attempt,) = settlement_of(claim_of(make_timer(retry_policy=policy)), outcome).attempts
        assert (attempt.outcome, attempt.error) == (told, error)


def test_a_new_delivery_id_is_drawn_only_for_a_new_firing() -> None:
    def never() -> str:
        raise AssertionError("no new firing")

    for outcome in (completed(), failed()):
        transitions.settlement_of(
            claim_of(make_timer(retry_policy=POLICY)), outcome, chance=0.0, new_delivery_id=never
        )


def test_handed_back() -> None:
    timer = executing(
        replace(make_timer(), attempt=1, failures=1, attempts=attempts(1), last_error="x")
    )
    settlement = transitions.hand_back(transitions.claim_of(timer), due_at=at(5), now=at(3))
    result = transitions.settled(timer, settlement)
    assert result.status is TimerStatus.PENDING
    assert (result.attempt, result.failures, result.attempts) == (1, 1, attempts(1))
    assert (result.due_at, result.execute_at) == (at(5), timer.execute_at)
    assert result.delivery_id == timer.delivery_id
    assert result.last_error == "x"


def test_recovered() -> None:
    timer = executing(make_timer(retry_policy=POLICY))
    result = transitions.recovered(timer)
    assert result.status is TimerStatus.PENDING
    assert (result.attempt, result.failures) == (1, 0)
    assert (result.due_at, result.delivery_id) == (timer.due_at, timer.delivery_id)
    assert result.last_error == INTERRUPTED
    lost = Attempt(
        number=1,
        due_at=timer.due_at,
        claimed_at=at(0.5),
        recorded_outcome=AttemptOutcome.INTERRUPTED,
        error=INTERRUPTED,
    )
    assert result.attempts == (lost,)


def test_the_list_of_attempts_is_bounded_on_every_path() -> None:
    timer = executing(replace(make_timer(), attempts=attempts(MAX_ATTEMPTS_REMEMBERED)))
    claim = transitions.claim_of(timer)
    for result in (
        settlement_of(claim, completed()).attempts,
        settlement_of(claim, failed()).attempts,
        transitions.recovered(timer).attempts,
    ):
        assert len(result) == MAX_ATTEMPTS_REMEMBERED
        assert result[:2] == (timer.attempts[0], timer.attempts[2])
        assert result[-1].claimed_at == timer.claimed_at


def test_the_first_attempt_of_all_and_that_of_the_firing_are_never_forgotten() -> None:
    """The first of all identifies a repeated create; the time for retries counts from the other."""
    first = Attempt(number=1, due_at=at(0), claimed_at=at(0))
    made = (first, *attempts(MAX_ATTEMPTS_REMEMBERED - 1))
    timer = executing(replace(make_timer(), attempt=MAX_ATTEMPTS_REMEMBERED - 1, attempts=made))
    result = transitions.recovered(timer).attempts
    assert result[:3] == (first, made[1], made[3])
    # With a new firing, nothing begins at the other one any more.
    fired_again = replace(timer, attempt=1)
    result = transitions.recovered(fired_again).attempts
    assert result[:3] == (first, made[2], made[3])


def retrying() -> Timer:
    return replace(
        make_timer(retry_policy=POLICY, metadata=Raw(b"1")),
        due_at=at(12),
        attempt=1,
        failures=1,
        attempts=attempts(1),
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(updated_at=at(3), delivery_id="new"), {}),
        (Change(updated_at=at(3), delivery_id="new", metadata=None), {"metadata": None}),
        (
            Change(updated_at=at(3), delivery_id="new", metadata=Raw(b"null")),
            {"metadata": Raw(b"null")},
        ),
        (Change(updated_at=at(3), delivery_id="new", retry_policy=None), {"retry_policy": None}),
    ],
)
def test_a_small_change_leaves_the_planned_retry_alone(
    change: Change, expected: dict[str, object]
) -> None:
    assert transitions.changed(retrying(), change) == replace(
        retrying(), updated_at=at(3), **expected
    )


def test_a_new_instant_is_a_new_firing() -> None:
    change = Change(updated_at=at(3), delivery_id="new", execute_at=at(99))
    assert transitions.changed(retrying(), change) == replace(
        retrying(),
        updated_at=at(3),
        execute_at=at(99),
        due_at=at(99),
        delivery_id="new",
        attempt=0,
        failures=0,
    )


def test_a_new_callback_is_a_new_firing_at_the_planned_instant() -> None:
    callback = HttpCallback(url="https://example.com/other")
    change = Change(updated_at=at(3), delivery_id="new", callback=callback)
    assert transitions.changed(retrying(), change) == replace(
        retrying(),
        updated_at=at(3),
        callback=callback,
        delivery_id="new",
        attempt=0,
        failures=0,
    )


def test_canceled() -> None:
    timer = make_timer()
    assert transitions.canceled(timer, at(4)) == replace(
        timer, status=TimerStatus.CANCELED, updated_at=at(4)
    )


def test_three_states_are_final() -> None:
    assert [status for status in TimerStatus if status.is_finished] == [
        TimerStatus.COMPLETED,
        TimerStatus.FAILED,
        TimerStatus.CANCELED,
    ]


def test_the_stored_numbers_and_names_of_states_never_change() -> None:
    assert {status.label: status.value for status in TimerStatus} == {
        "pending": 0,
        "executing": 1,
        "completed": 2,
        "failed": 3,
        "canceled": 4,
    }


def test_an_interrupted_attempt_is_made_again_at_once_and_is_no_failure() -> None:
    settlement = settlement_of(claim_of(make_timer()), interrupted())
    assert settlement.status is TimerStatus.PENDING
    assert (settlement.attempt, settlement.failures) == (1, 0)
    assert settlement.due_at <= at(2)
    assert settlement.last_error == settlement.attempts[-1].error == "connection reset"
