"""The timer, its attempts, and the claim that the engine gets of it."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from msgspec import Raw, Struct, field

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.outcome import INTERRUPTED, AttemptOutcome
from duetime.domain.retry import RetryPolicy


class TimerStatus(IntEnum):
    """The status of a timer. The numbers are stored; they never change meaning.

    The functions of `domain.transitions` make every change of a status:

        pending -> executing            claimed
        executing -> completed|failed   settlement_of
        executing -> pending            settlement_of (retry, reschedule, interruption), hand_back,
                                        recovered
        pending -> pending              changed, replaced
        pending -> canceled             canceled
        failed -> pending               redriven

    `restored` brings a timer of a copy into a store, in any status but executing.
    """

    PENDING = 0
    EXECUTING = 1
    COMPLETED = 2
    FAILED = 3
    CANCELED = 4

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def is_finished(self) -> bool:
        return self >= TimerStatus.COMPLETED


def unfinished_of(counts: Mapping[TimerStatus, int]) -> int:
    """The number of timers that are pending or executing."""
    return counts[TimerStatus.PENDING] + counts[TimerStatus.EXECUTING]


_OUTCOMES: dict[str | None, AttemptOutcome] = {outcome.value: outcome for outcome in AttemptOutcome}


class Wait(NamedTuple):
    """A part of an attempt's lateness. The cause is a word of `WaitCause`, or one that a later
    release knows."""

    cause: str
    microseconds: int


Waits = tuple[Wait, ...]
"""Waits one after the other, from the instant since which the attempt was late until it was sent.
`domain.lateness` has the rules."""


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One try to deliver. `error` is absent when it was completed or rescheduled. `answer` is the
    beginning of an answer that was a failure.

    An attempt whose service ended before the answer was recorded has neither `sent_at` nor
    `answered_at`. `outcome` is derived from the error if `recorded_outcome` is absent or a word of
    a later release. `waits` is absent where the instants tell as much.
    """

    number: int
    due_at: Instant
    claimed_at: Instant
    sent_at: Instant | None = None
    answered_at: Instant | None = None
    recorded_outcome: str | None = field(default=None, name="outcome")
    error: str | None = None
    answer: str | None = None
    waits: Waits = ()

    @property
    def outcome(self) -> AttemptOutcome:
        if self.recorded_outcome in _OUTCOMES:
            return _OUTCOMES[self.recorded_outcome]
        if self.error is None:
            return AttemptOutcome.COMPLETED
        is_lost = self.error == INTERRUPTED
        return AttemptOutcome.INTERRUPTED if is_lost else AttemptOutcome.FAILED


class Timer(Struct, frozen=True, kw_only=True, gc=False):
    """A promise for an instant, as the store keeps it.

    `execute_at` is the instant the client asked for. `due_at` is the instant of the next attempt:
    the same at first, later ones while a retry is planned. `delivery_id` names this firing: it
    stays through retries and crash repeats. It changes when the timer is rescheduled or redriven,
    or when its callback or instant is changed. `attempt` counts the attempts of this firing,
    `failures` the failed ones. `claim_number` counts every claim of the timer and never goes back,
    so it names one claim. `epoch` and `claimed_at` belong to the claim while the timer is
    executing. `updated_at` of a finished timer is the instant it finished.
    `command_order` is the position of the bus command that scheduled the timer; a command with a
    lower or equal position changes nothing. Timers of the APIs have 0.
    """

    key: TimerKey
    shard: ShardNumber
    timer_uuid: bytes
    delivery_id: str
    execute_at: Instant
    due_at: Instant
    callback: Callback
    created_at: Instant
    updated_at: Instant
    status: TimerStatus = TimerStatus.PENDING
    attempt: int = 0
    failures: int = 0
    claim_number: int = 0
    retry_policy: RetryPolicy | None = None
    metadata: Raw | None = None
    correlation_id: str | None = None
    command_order: int = 0
    fingerprint: bytes | None = None
    attempts: tuple[Attempt, ...] = ()
    last_error: str | None = None
    executed_at: Instant | None = None
    epoch: Epoch = Epoch(0)
    claimed_at: Instant | None = None


class Claim(Struct, frozen=True, kw_only=True):
    """The part of a claimed timer that the engine gets: enough to deliver and to settle it.

    `(namespace, id, created_at, claim_number, epoch)` is the guard of the settlement: a store
    applies it only while the timer is executing under exactly that claim and epoch. The number of
    the attempt would not do: it repeats after a claim was handed back. `created_at` tells the
    timer from an earlier one of the same key that was removed.
    """

    namespace: str
    id: str
    shard: ShardNumber
    epoch: Epoch
    created_at: Instant
    claim_number: int
    attempt: int
    failures: int
    execute_at: Instant
    due_at: Instant
    claimed_at: Instant
    delivery_id: str
    callback: Callback
    retry_policy: RetryPolicy | None = None
    correlation_id: str | None = None
    attempts: tuple[Attempt, ...] = ()
