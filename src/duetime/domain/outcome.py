"""Outcomes of attempts."""

from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from duetime.domain.instants import Instant

INTERRUPTED = "interrupted: the service stopped before an answer was recorded"
"""The error of an attempt whose service ended before the answer was recorded."""


class AttemptOutcome(StrEnum):
    """The outcome of an attempt in a word. The words are stored; they never change meaning."""

    COMPLETED = "completed"
    RESCHEDULED = "rescheduled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """No answer was recorded, and the endpoint is not to blame: the service stopped meanwhile, or
    the connection turned out to be gone."""


class Completed(Struct, frozen=True, kw_only=True):
    """The endpoint accepted the callback."""

    kind: ClassVar[AttemptOutcome] = AttemptOutcome.COMPLETED
    sent_at: Instant
    answered_at: Instant


class Rescheduled(Struct, frozen=True, kw_only=True):
    """The endpoint asked to be called again at another instant: a new firing."""

    kind: ClassVar[AttemptOutcome] = AttemptOutcome.RESCHEDULED
    sent_at: Instant
    answered_at: Instant
    next_execute_at: Instant


class Failed(Struct, frozen=True, kw_only=True):
    """The endpoint refused, did not answer in time, or could not be reached.

    `error` is for people, and `answer` is the beginning of what the endpoint said, if it said
    something that is to be kept. `retry_after_ms` is the delay that the endpoint asked for, if any.
    `blames_endpoint` is False when the endpoint is evidently alive and refuses only this timer:
    then its other timers are not affected. `is_away` is True when it is known that they would
    fail now as well. `is_final` is True when nothing was sent because this service may not send
    it: no retry follows, and nothing is known about the endpoint.
    """

    kind: ClassVar[AttemptOutcome] = AttemptOutcome.FAILED
    sent_at: Instant
    answered_at: Instant
    error: str
    answer: str | None = None
    retry_after_ms: int | None = None
    blames_endpoint: bool = True
    is_away: bool = False
    is_final: bool = False


class Interrupted(Struct, frozen=True, kw_only=True):
    """The connection turned out to be gone when the attempt was made.

    Most likely the endpoint never saw the attempt. Another one is made at once, and no failure is
    counted.
    """

    kind: ClassVar[AttemptOutcome] = AttemptOutcome.INTERRUPTED
    sent_at: Instant
    answered_at: Instant
    error: str


Outcome = Completed | Rescheduled | Failed | Interrupted


class NotSent(Exception):
    """There is no outcome: the attempt was no longer permitted when it was about to be sent, so
    nothing was sent."""
