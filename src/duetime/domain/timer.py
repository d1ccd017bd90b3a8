"""The timer and what is remembered of its attempts."""

from enum import IntEnum

from msgspec import Raw, Struct, field

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.outcome import INTERRUPTED, AttemptOutcome
from duetime.domain.retry import RetryPolicy


class TimerStatus(IntEnum):
    """Where a timer is in its life. The numbers are stored; they never change meaning."""

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


_OUTCOMES: dict[str | None, AttemptOutcome] = {outcome.value: outcome for outcome in AttemptOutcome}


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One try to deliver. `error` is absent when it was completed or rescheduled.

    An attempt that the service did not live to see answered has neither `sent_at` nor
    `answered_at`, because nobody is left who knows. `recorded_outcome` is absent in attempts that
    were made by older releases, and may be a word of a later one; `outcome` tells of these what can
    be known.
    """

    number: int
    due_at: Instant
    claimed_at: Instant
    sent_at: Instant | None = None
    answered_at: Instant | None = None
    recorded_outcome: str | None = field(default=None, name="outcome")
    error: str | None = None

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

    `execute_at` is the instant the client asked for. `due_at` is when the next attempt is to
    be made: the same instant at first, later ones while retries are waited for. `delivery_id`
    names this firing: it stays through retries and crash repeats and changes when the timer
    is rescheduled or its callback or instant is changed. `attempt` counts the attempts of this
    firing, `failures` those of them that failed. `claim_number` counts every claim of the timer
    and never goes back, so it names one claim. `epoch` and `claimed_at` are those of the claim
    while the timer is executing. `updated_at` of a finished timer is the instant it finished.
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
    """What the engine gets of a timer that it claimed: enough to deliver and to settle it.

    `(namespace, id, created_at, claim_number, epoch)` is the guard of the settlement: a store
    applies it only while the timer is executing under exactly that claim and epoch. The attempt
    would not do: its number repeats after a claim was handed back. `created_at` tells a timer
    from one of the same key that was removed.
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
