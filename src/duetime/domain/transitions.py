"""Every change of a timer's state, as pure functions. `TimerStatus` lists them.

Finished states never change again by themselves; `redriven` takes an operator.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, plus_ms
from duetime.domain.keys import Epoch, TimerKey
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
from duetime.domain.retry import UNTIL_DELIVERED, RetryPolicy
from duetime.domain.timer import Attempt, Claim, Timer, TimerStatus, Waits


class Settlement(Struct, frozen=True, kw_only=True):
    """The next state of an executing timer, and the guard under which it applies.

    A settlement applies only while the timer that was created at `created_at` is executing under
    `claim_number` and `epoch`; otherwise another owner has taken over, and nothing is written.
    """

    namespace: str
    id: str
    created_at: Instant
    claim_number: int
    epoch: Epoch
    status: TimerStatus
    execute_at: Instant
    due_at: Instant
    delivery_id: str
    attempt: int
    failures: int
    attempts: tuple[Attempt, ...]
    last_error: str | None
    executed_at: Instant | None
    updated_at: Instant


ClaimId = tuple[str, str, Instant, int]
"""Identifies one claim: namespace, id, creation and claim number. The creation tells the timer from
an earlier one of the same key that was removed."""


def claim_id_of(claim: Claim | Settlement) -> ClaimId:
    return claim.namespace, claim.id, claim.created_at, claim.claim_number


def holds(claims: Iterable[Claim], claim: Claim) -> bool:
    """Whether the claim is among these. Quick, because most ids differ."""
    return any(each.id == claim.id and claim_id_of(each) == claim_id_of(claim) for each in claims)


class Change(Struct, frozen=True, kw_only=True):
    """A change of a pending timer. A field left unset stays as it is.

    `delivery_id` is the name of the new firing, used if the change makes one. `due_at` moves the
    next attempt of the same firing; a new `execute_at` prevails over it. With `only_firing` the
    change applies only while that is the timer's firing: a change of a part of the callback depends
    on the other parts. With `only_updated_at` it applies only while the timer was not changed
    since.
    """

    updated_at: Instant
    delivery_id: str
    only_firing: str | None = None
    only_updated_at: Instant | None = None
    execute_at: Instant | UnsetType = UNSET
    due_at: Instant | UnsetType = UNSET
    callback: Callback | UnsetType = UNSET
    metadata: Raw | UnsetType | None = UNSET
    retry_policy: RetryPolicy | UnsetType | None = UNSET
    correlation_id: str | UnsetType | None = UNSET
    command_order: int | UnsetType = UNSET


class Redrive(Struct, frozen=True, kw_only=True):
    """A request to fire a failed timer once more, and the name of that firing."""

    key: TimerKey
    delivery_id: str


def settlement_of(
    claim: Claim,
    outcome: Outcome,
    *,
    chance: float,
    new_delivery_id: Callable[[], str],
    waits: Waits = (),
) -> Settlement:
    """The settlement of an attempt that was made, after the `waits`. `chance` determines the jitter
    of a retry."""
    attempts = _remembered((*claim.attempts, _attempt(claim, outcome, waits)))
    now = outcome.answered_at
    match outcome:
        case Completed():
            return _settlement(claim, now, TimerStatus.COMPLETED, attempts, executed_at=now)
        case Rescheduled(next_execute_at=next_execute_at):
            return replace(
                _settlement(claim, now, TimerStatus.PENDING, attempts),
                execute_at=next_execute_at,
                due_at=next_execute_at,
                delivery_id=new_delivery_id(),
                attempt=0,
                failures=0,
            )
        case Interrupted(error=error):
            again = _settlement(claim, now, TimerStatus.PENDING, attempts)
            return replace(again, last_error=error)
        case Failed(error=error):
            failures = claim.failures + 1
            first = attempts[_first_of_firing(attempts)]
            first_made_at = first.claimed_at if first.sent_at is None else first.sent_at
            due_at = _next_due_at(claim, outcome, failures, first_made_at, chance)
            if due_at is None:
                failed = _settlement(claim, now, TimerStatus.FAILED, attempts, executed_at=now)
                return replace(failed, failures=failures, last_error=error)
            retry = _settlement(claim, now, TimerStatus.PENDING, attempts)
            return replace(retry, failures=failures, last_error=error, due_at=due_at)
        case _ as unreachable:
            assert_never(unreachable)


def hand_back(claim: Claim, *, due_at: Instant, now: Instant) -> Settlement:
    """The settlement of a claim that was never sent: the attempt does not count."""
    return replace(
        _settlement(claim, now, TimerStatus.PENDING, claim.attempts),
        due_at=due_at,
        attempt=claim.attempt - 1,
        last_error=claim.attempts[-1].error if claim.attempts else None,
    )


def claimed(timer: Timer, *, epoch: Epoch, now: Instant) -> Timer:
    return replace(
        timer,
        status=TimerStatus.EXECUTING,
        attempt=timer.attempt + 1,
        claim_number=timer.claim_number + 1,
        epoch=epoch,
        claimed_at=now,
    )


def claim_of(timer: Timer) -> Claim:
    """The claim of an executing timer."""
    assert timer.claimed_at is not None
    return Claim(
        namespace=timer.key.namespace,
        id=timer.key.id,
        shard=timer.shard,
        epoch=timer.epoch,
        created_at=timer.created_at,
        claim_number=timer.claim_number,
        attempt=timer.attempt,
        failures=timer.failures,
        execute_at=timer.execute_at,
        due_at=timer.due_at,
        claimed_at=timer.claimed_at,
        delivery_id=timer.delivery_id,
        callback=timer.callback,
        retry_policy=timer.retry_policy,
        correlation_id=timer.correlation_id,
        attempts=timer.attempts,
    )


def settled(timer: Timer, settlement: Settlement) -> Timer:
    return replace(
        timer,
        status=settlement.status,
        execute_at=settlement.execute_at,
        due_at=settlement.due_at,
        delivery_id=settlement.delivery_id,
        attempt=settlement.attempt,
        failures=settlement.failures,
        attempts=settlement.attempts,
        last_error=settlement.last_error,
        executed_at=settlement.executed_at,
        updated_at=settlement.updated_at,
        claimed_at=None,
    )


def recovered(timer: Timer) -> Timer:
    """A timer that a dead owner left executing, pending again. Its attempt is recorded as lost."""
    assert timer.claimed_at is not None
    lost = Attempt(
        number=timer.attempt,
        due_at=was_due_at(timer),
        claimed_at=timer.claimed_at,
        recorded_outcome=AttemptOutcome.INTERRUPTED,
        error=INTERRUPTED,
    )
    return replace(
        timer,
        status=TimerStatus.PENDING,
        claimed_at=None,
        attempts=_remembered((*timer.attempts, lost)),
        last_error=INTERRUPTED,
    )


def restored(timer: Timer) -> Timer:
    """A timer of a copy, as another store takes it over. Claims end with the store that made them:
    an executing timer becomes `recovered`, and its attempt may be made twice."""
    if timer.status is TimerStatus.EXECUTING:
        timer = recovered(timer)
    return replace(timer, epoch=Epoch(0))


def applies(change: Change, timer: Timer) -> bool:
    """Whether the change applies to the timer in its current state."""
    return (
        timer.status is TimerStatus.PENDING
        and (change.only_firing is None or change.only_firing == timer.delivery_id)
        and (change.only_updated_at is None or change.only_updated_at == timer.updated_at)
    )


def changed(timer: Timer, change: Change) -> Timer:
    """A pending timer with the change applied.

    A new instant or a new callback makes a new firing: attempts start over under a new
    delivery id. Without them a planned retry stays as it was.
    """
    result = replace(timer, updated_at=change.updated_at)
    if change.metadata is not UNSET:
        result = replace(result, metadata=change.metadata)
    if change.retry_policy is not UNSET:
        result = replace(result, retry_policy=change.retry_policy)
    if change.correlation_id is not UNSET:
        result = replace(result, correlation_id=change.correlation_id)
    if change.command_order is not UNSET:
        result = replace(result, command_order=change.command_order)
    if change.due_at is not UNSET:
        result = replace(result, due_at=change.due_at)
    if change.execute_at is UNSET and change.callback is UNSET:
        return result
    execute_at = timer.execute_at if change.execute_at is UNSET else change.execute_at
    return replace(
        result,
        execute_at=execute_at,
        due_at=result.due_at if change.execute_at is UNSET else execute_at,
        callback=timer.callback if change.callback is UNSET else change.callback,
        delivery_id=change.delivery_id,
        attempt=0,
        failures=0,
    )


def run_now(timer: Timer, now: Instant, delivery_id: str) -> Change | None:
    """The change that makes a pending timer due at once, as it was read; None if it is due already.

    A timer whose instant is still to come gets the present one, and that is a new firing. A timer
    that waits for a retry keeps its firing, so that its receiver recognises a repeat.
    """
    if timer.due_at <= now:
        return None
    is_to_come = timer.execute_at > now
    return Change(
        updated_at=now,
        delivery_id=delivery_id,
        only_firing=timer.delivery_id,
        only_updated_at=timer.updated_at,
        execute_at=now if is_to_come else UNSET,
        due_at=UNSET if is_to_come else now,
    )


def replaced(existing: Timer, timer: Timer) -> Timer:
    """The new timer that replaces a pending one of the same key."""
    return replace(timer, created_at=existing.created_at, claim_number=existing.claim_number)


def may_cancel(timer: Timer, only_updated_at: Instant | None) -> bool:
    """Whether a cancel applies, which may be for the timer as it was when last updated."""
    return timer.status is TimerStatus.PENDING and (
        only_updated_at is None or timer.updated_at == only_updated_at
    )


def canceled(timer: Timer, now: Instant) -> Timer:
    return replace(timer, status=TimerStatus.CANCELED, updated_at=now)


def redriven(timer: Timer, redrive: Redrive, now: Instant) -> Timer:
    """A failed timer, due at once as a new firing. It keeps its instant and its past attempts;
    retries start over."""
    return replace(
        timer,
        status=TimerStatus.PENDING,
        due_at=max(now, timer.execute_at),
        delivery_id=redrive.delivery_id,
        attempt=0,
        failures=0,
        executed_at=None,
        updated_at=now,
    )


def _attempt(claim: Claim, outcome: Outcome, waits: Waits) -> Attempt:
    return Attempt(
        number=claim.attempt,
        due_at=was_due_at(claim),
        claimed_at=claim.claimed_at,
        sent_at=outcome.sent_at,
        answered_at=outcome.answered_at,
        recorded_outcome=outcome.kind,
        error=outcome.error if isinstance(outcome, Failed | Interrupted) else None,
        answer=outcome.answer if isinstance(outcome, Failed) else None,
        waits=waits,
    )


def not_before(claim: Claim) -> Instant:
    """The instant before which the attempt must not be sent. A deferral does not count: it is our
    own, and may have been planned by a clock that was ahead."""
    return max(was_due_at(claim), claim.execute_at)


def was_due_at(executing: Claim | Timer) -> Instant:
    """The instant at which the attempt was due. The first attempt of a firing is due at the timer's
    instant, even if the claim was handed back since."""
    is_rescheduled = bool(executing.attempts) and executing.attempts[-1].error is None
    if executing.attempt == 1 and (is_rescheduled or not executing.attempts):
        return executing.execute_at
    return executing.due_at


def _settlement(
    claim: Claim,
    now: Instant,
    status: TimerStatus,
    attempts: tuple[Attempt, ...],
    executed_at: Instant | None = None,
) -> Settlement:
    return Settlement(
        namespace=claim.namespace,
        id=claim.id,
        created_at=claim.created_at,
        claim_number=claim.claim_number,
        epoch=claim.epoch,
        status=status,
        execute_at=claim.execute_at,
        due_at=claim.due_at,
        delivery_id=claim.delivery_id,
        attempt=claim.attempt,
        failures=claim.failures,
        attempts=attempts,
        last_error=None,
        executed_at=executed_at,
        updated_at=now,
    )


def _remembered(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """At most MAX_ATTEMPTS_REMEMBERED attempts: the latest, the first of all (which identifies a
    repeated create) and the first of this firing (from which the time for retries counts)."""
    if len(attempts) <= MAX_ATTEMPTS_REMEMBERED:
        return attempts
    oldest = 2 if _first_of_firing(attempts) == 1 else 1
    return attempts[:oldest] + attempts[oldest + 1 :]


def _first_of_firing(attempts: tuple[Attempt, ...]) -> int:
    for position in range(len(attempts) - 1, -1, -1):
        if attempts[position].number == 1:
            return position
    return 0


def _next_due_at(
    claim: Claim, failure: Failed, failures: int, first_made_at: Instant, chance: float
) -> Instant | None:
    policy = UNTIL_DELIVERED if isinstance(claim.callback, BusCallback) else claim.retry_policy
    if failure.is_final or policy is None or failures > policy.max_retries:
        return None
    delay_ms = policy.delay_ms(failures, chance, failure.retry_after_ms)
    # Never before its instant, even if the wall clock was set back meanwhile.
    due_at = max(plus_ms(failure.answered_at, delay_ms), claim.execute_at)
    latest = first_made_at + policy.max_duration_ms * MICROSECONDS_PER_MS
    return due_at if due_at <= latest else None
