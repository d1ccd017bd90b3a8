"""Explanations of any record that a timer may have: their sums, and their words."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus, Wait
from duetime.domain.transitions import Redrive, redriven
from duetime.ports.endpoints import EndpointPause, EndpointState, EndpointStatus, FiringReport
from duetime.service.explaining import Explanation
from duetime.service.explaining.sentences import advice_of, length_text, section_of
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT
from tests.simulation.lateness.explained import NOBODY, explained, milliseconds
from tests.unit.service.explaining.any_timers import REPORTS, SHORT, timers

OURS = FiringReport(node="one", owns_shard=True, owner="one")


def at(ms: float) -> Instant:
    return plus_ms(START_AT, ms)


def attempt(number: int, due: float, claimed: float, **more: object) -> Attempt:
    times = {
        name: None if more.get(name) is None else at(float(str(more[name])))
        for name in ("sent_at", "answered_at")
    }
    rest = {name: value for name, value in more.items() if name not in times}
    return Attempt(number=number, due_at=at(due), claimed_at=at(claimed), **times, **rest)  # type: ignore[arg-type]


def completed(*attempts: Attempt, **more: object) -> Timer:
    timer = make_timer(execute_at=START_AT, created_at=at(-60_000))
    changes = {"status": TimerStatus.COMPLETED, "attempt": len(attempts), **more}
    return replace(timer, attempts=attempts, **changes)


@given(timers(), REPORTS, SHORT)
def test_every_microsecond_is_in_one_period(timer: Timer, report: FiringReport, now: int) -> None:
    explained(timer, Instant(START_AT + now), report)


FOUND = (WaitCause.ACCEPTED_LATE, WaitCause.RETRY_POLICY, WaitCause.ENDPOINT)
"""Causes that no attempt records as a wait."""


@pytest.mark.parametrize("cause", [cause for cause in WaitCause if cause not in FOUND])
def test_every_cause_that_is_recorded_is_told_with_advice(cause: WaitCause) -> None:
    waits = (Wait(cause, 5_000_000),)
    made = attempt(1, 0, 5_000, sent_at=5_000, answered_at=5_010, waits=waits)
    explanation = explained(completed(made), at(60_000))
    assert milliseconds(explanation)[cause] >= 5_000
    assert explanation.late == 5_000_000
    is_pause = cause is WaitCause.PAUSED
    assert explanation.advice == (None if is_pause else advice_of(cause, completed(made)))
    assert explanation.periods[0].sentence.endswith(".")
    assert explanation.periods[0].see == section_of(cause)


def test_the_advice_about_a_quota_can_be_pasted_into_a_shell() -> None:
    waits = (Wait("quota", 5_000_000),)
    made = attempt(1, 0, 5_000, sent_at=5_000, answered_at=5_010, waits=waits)
    timer = completed(made)
    for namespace, typed in (("orders", "orders"), ("it's {x}", "'it'\"'\"'s {x}'")):
        renamed = replace(timer, key=timer.key._replace(namespace=namespace))
        advice = str(explained(renamed, at(60_000)).advice)
        assert f"`duetime namespaces set {typed} --concurrency N`" in advice


def test_a_short_time_in_the_engine_is_called_sent_at_once_only_if_it_was() -> None:
    waits = (Wait("engine", 2_900), Wait("quota", 1_659_000))
    made = attempt(1, 0, 0, sent_at=1_661.9, answered_at=1_700, waits=waits)
    engine, quota, endpoint = explained(completed(made), at(2_000)).periods
    assert engine.sentence == "It was claimed, and its turn had come."
    assert quota.cause is WaitCause.QUOTA
    made = attempt(1, 0, 0, sent_at=2.9, answered_at=40, waits=(Wait("engine", 2_900),))
    engine, endpoint = explained(completed(made), at(2_000)).periods
    assert engine.sentence == "It was sent at once."
    assert endpoint.cause is WaitCause.ENDPOINT


def test_a_cause_of_a_later_release_is_shown_as_not_recorded() -> None:
    made = attempt(1, 0, 0, sent_at=50, answered_at=60, waits=(Wait("moon", 50_000),))
    explanation = explained(completed(made), at(100))
    assert milliseconds(explanation) == {WaitCause.NOT_RECORDED: 50, WaitCause.ENDPOINT: 10}


def test_a_record_of_an_earlier_release_is_explained_from_its_instants() -> None:
    made = attempt(1, 0, 300, sent_at=350, answered_at=360)
    explanation = explained(completed(made), at(1_000))
    assert milliseconds(explanation) == {
        WaitCause.CLAIM: 300,
        WaitCause.ENGINE: 50,
        WaitCause.ENDPOINT: 10,
    }


def test_attempts_that_are_not_remembered_leave_a_gap_that_is_named() -> None:
    first = attempt(1, 0, 0, sent_at=0, answered_at=10, error="HTTP 500")
    last = attempt(9, 60_000, 60_000, sent_at=60_000, answered_at=60_010)
    explanation = explained(completed(first, last), at(70_000))
    assert milliseconds(explanation)[WaitCause.NOT_RECORDED] == 59_990


def test_a_redriven_timer_is_explained_from_its_redrive_on() -> None:
    failed = replace(
        completed(attempt(1, 0, 0, sent_at=0, answered_at=10, error="HTTP 500")),
        status=TimerStatus.FAILED,
    )
    again = redriven(failed, Redrive(key=failed.key, delivery_id="again"), at(90_000))
    explanation = explained(again, at(90_250), replace(OURS, waits=(Wait("claim", 250_000),)))
    assert explanation.asked_at == at(90_000)
    assert milliseconds(explanation) == {WaitCause.CLAIM: 250}
    assert explanation.attempts == ()


def pending(**more: object) -> Timer:
    return replace(make_timer(execute_at=START_AT, created_at=at(-60_000)), **more)


def endpoint(**more: object) -> EndpointStatus:
    plain = EndpointStatus(
        endpoint="https://example.com:443",
        state=EndpointState.OPEN,
        in_flight=4,
        waiting=7,
        consecutive_failures=24,
        last_error="HTTP 503",
        opened_at=at(-5_000),
    )
    return replace(plain, **more)


def late(**more: object) -> Explanation:
    """A timer of this node that is late by two seconds."""
    report = replace(OURS, waits=(Wait("claim", 2_000_000),), **more)
    return explained(pending(due_at=at(3_000)), at(2_000), report)


def test_a_timer_that_waits_says_for_what() -> None:
    assert late(waits_for=WaitCause.BREAKER, endpoint=endpoint()).verdict == (
        "Due for 2.00 s: the breaker of https://example.com:443 is open since"
        " 2029-12-31T23:59:55Z (last error: HTTP 503). It is tried again at"
        " 2030-01-01T00:00:03Z."
    )
    assert "namespace 'default' has 2 of 2 callbacks under way" in (
        late(waits_for=WaitCause.QUOTA, quota_in_flight=2, quota_limit=2).verdict
    )
    assert "has 4 callbacks under way and 7 waiting" in (
        late(waits_for=WaitCause.LANE, endpoint=endpoint(state=EndpointState.CLOSED)).verdict
    )
    assert "the disk is full" in late(disk_is_full=True).verdict
    assert "the engine of its node does not run" in late(is_running=False).verdict
    assert "clock is 900 ms behind the store's" in late(clock_ahead_ms=-900.0).verdict


def test_a_timer_of_a_paused_endpoint_says_since_when_and_by_whom() -> None:
    pause = EndpointPause(
        endpoint="https://example.com:443", paused_at=at(-5_000), paused_by="ops", reason="a deploy"
    )
    paused = endpoint(pause=pause, state=EndpointState.CLOSED)
    explanation = late(waits_for=WaitCause.PAUSED, endpoint=paused)
    sentence = "https://example.com:443 is paused since 2029-12-31T23:59:55Z by ops (a deploy)."
    assert explanation.verdict == f"Due for 2.00 s: {sentence}"
    assert explanation.advice is not None
    assert "duetime endpoints resume" in explanation.advice
    not_due = explained(pending(due_at=at(3_000)), at(-9_000), replace(OURS, endpoint=paused))
    assert not_due.verdict.startswith("Not due yet")
    assert not_due.advice == sentence


def test_the_state_of_an_endpoint_can_be_left_out() -> None:
    verdict = late(waits_for=WaitCause.BREAKER).verdict
    assert verdict.startswith("Due for 2.00 s: waiting for its endpoint's breaker to close.")


def test_another_node_names_the_owner_and_guesses_nothing() -> None:
    report = replace(NOBODY, owner="two", owner_url="http://two:8080")
    explanation = explained(pending(), at(2_000), report)
    assert not explanation.is_live
    assert "node two at http://two:8080, which knows why it waits" in explanation.verdict
    assert milliseconds(explanation) == {WaitCause.NOT_RECORDED: 2_000}


def test_an_owner_behind_the_same_address_is_reached_by_repeating() -> None:
    url = "http://one:8080"
    report = replace(NOBODY, owner="two", owner_url=url, node_url=url)
    for timer in (pending(), executing(claimed=1_500)):
        assert "repeat the command" in str(explained(timer, at(2_000), report).advice).lower()
    apart = explained(pending(), at(2_000), replace(report, node_url="http://two:8080"))
    assert "--server" in str(apart.advice)


def test_a_timer_that_is_not_due_needs_no_other_node() -> None:
    report = replace(NOBODY, owner="two", owner_url="http://two:8080")
    assert explained(pending(), at(-5_000), report).advice is None


def executing(claimed: float) -> Timer:
    status = TimerStatus.EXECUTING
    return pending(status=status, attempt=1, claimed_at=at(claimed), due_at=START_AT)


def test_another_node_does_not_say_that_an_attempt_waits_which_may_be_under_way() -> None:
    report = replace(NOBODY, owner="two", owner_url="http://two:8080")
    explanation = explained(executing(claimed=1_500), at(2_000), report)
    assert explanation.verdict == (
        "Attempt 1 is waiting to be sent or under way: its shard belongs to node two at"
        " http://two:8080, which knows more."
    )
    assert (explanation.late, explanation.is_live) == (None, False)
    assert milliseconds(explanation) == {WaitCause.NOT_RECORDED: 2_000}


def test_an_attempt_whose_node_is_gone_may_have_been_sent() -> None:
    explanation = explained(executing(claimed=1_500), at(2_000))
    assert explanation.verdict == (
        "Attempt 1 was claimed and may have been sent, but no living node owns its shard."
    )
    assert explanation.late is None


def test_an_attempt_that_another_node_claimed_early_is_not_due_yet() -> None:
    report = replace(NOBODY, owner="two")
    assert explained(executing(claimed=-50), at(-20), report).verdict.startswith("Not due yet: ")


@pytest.mark.parametrize(
    ("policy", "failures", "words"),
    [
        (None, 1, "It has no retries."),
        (RetryPolicy(max_retries=1), 2, "Its 1 retry is used up."),
        (RetryPolicy(max_retries=2), 3, "Its 2 retries are used up."),
        (RetryPolicy(max_retries=2), 1, "the time for retries was over, or this failure is final"),
    ],
)
def test_a_failed_timer_says_why_no_retry_follows(
    policy: RetryPolicy | None, failures: int, words: str
) -> None:
    made = attempt(1, 0, 0, sent_at=0, answered_at=10, error="HTTP 500")
    timer = replace(
        completed(made),
        status=TimerStatus.FAILED,
        retry_policy=policy,
        failures=failures,
        last_error="HTTP 500",
    )
    explanation = explained(timer, at(1_000))
    assert explanation.verdict.startswith("Failed after 1 attempt: HTTP 500. ")
    assert words in explanation.verdict
    assert "duetime redrive" in str(explanation.advice)


def test_a_canceled_timer_says_when() -> None:
    timer = pending(status=TimerStatus.CANCELED, updated_at=at(-1_000))
    explanation = explained(timer, at(5_000))
    assert explanation.verdict == "Canceled at 2029-12-31T23:59:59Z: it does not fire."
    assert (explanation.late, explanation.periods) == (None, ())


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (
            HttpCallback(url="https://me:secret@a.example:8443/p?t=1"),
            "https://a.example:8443 had",
        ),
        (NatsCallback(topic="orders"), "the NATS subject had"),
        (BusCallback(), "the bus had"),
    ],
)
def test_the_target_is_named_without_secrets(
    callback: HttpCallback | NatsCallback | BusCallback, words: str
) -> None:
    made = attempt(1, 0, 0, sent_at=50, answered_at=60, waits=(Wait("lane", 50_000),))
    explanation = explained(completed(made, callback=callback), at(100))
    assert explanation.periods[0].sentence.startswith(words)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0.00 ms"),
        (420, "0.42 ms"),
        (1_500, "1.5 ms"),
        (250_000, "250 ms"),
        (5_350_000, "5.35 s"),
        (124_000_000, "2m 4s"),
        (3_600_000_000, "1h"),
        (100 * 3_600_000_000 + 1_000_000, "100h 1s"),
    ],
)
def test_lengths_are_short_to_read(microseconds: int, text: str) -> None:
    assert length_text(microseconds) == text
