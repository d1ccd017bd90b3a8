"""From values of a request to values of the domain. Errors use the platform's field names."""

from typing import Protocol

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from duetime.domain import instants
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import (
    Delay,
    Instant,
    format_duration,
    format_instant,
    parse_duration_ms,
)
from duetime.domain.limits import MAX_RETRIES
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, TimerStatus

STATUSES = {status.label: status for status in TimerStatus}
STATUS_LABELS = {status: status.label for status in TimerStatus}
ORDERS = {"asc": False, "desc": True}
"""Whether a list is descending, by the value of its `order` parameter."""

_DEFAULTS = RetryPolicy()


class RetryPolicyMembers(Protocol):
    """A retry policy in a request of either API."""

    @property
    def max_retries(self) -> int | UnsetType: ...
    @property
    def max_attempts(self) -> int | UnsetType: ...
    @property
    def max_retry_attempts_duration(self) -> str | UnsetType: ...
    @property
    def max_attempts_duration(self) -> str | UnsetType: ...
    @property
    def initial_interval(self) -> str | UnsetType: ...
    @property
    def backoff_multiplier(self) -> float | UnsetType: ...
    @property
    def max_interval(self) -> str | UnsetType: ...


def parse_instant(field: str, text: str) -> Instant:
    """The instant of an ISO 8601 date and time with an offset. Raises `InvalidInput`."""
    try:
        return instants.parse_instant(text)
    except ValueError as error:
        raise InvalidInput(field, str(error)) from None


def due_of(execute_at: str | UnsetType, execute_in: str | UnsetType) -> Instant | Delay:
    """The instant, or the duration until it: exactly one is given. Raises `InvalidInput`."""
    if execute_in is UNSET:
        if execute_at is UNSET:
            problem = "or execute_in is required: an instant, or a duration from now on"
            raise InvalidInput("execute_at", problem)
        return parse_instant("execute_at", execute_at)
    if execute_at is not UNSET:
        raise InvalidInput("execute_in", "and execute_at cannot both be given: give one of them")
    try:
        return Delay(parse_duration_ms(execute_in))
    except ValueError as error:
        raise InvalidInput("execute_in", str(error)) from None


def changed_due_of(
    execute_at: str | UnsetType, execute_in: str | UnsetType
) -> Instant | Delay | UnsetType:
    """The same for a change, which may leave the instant as it is."""
    if execute_at is UNSET and execute_in is UNSET:
        return UNSET
    return due_of(execute_at, execute_in)


def instant_or_none(instant: Instant | None) -> str | None:
    return None if instant is None else format_instant(instant)


def attempt_members(
    attempt: Attempt,
) -> tuple[int, str, str, str | None, str | None, AttemptOutcome, str | None, str | None]:
    """The members of an `AttemptAnswer` of either API."""
    return (
        attempt.number,
        format_instant(attempt.due_at),
        format_instant(attempt.claimed_at),
        instant_or_none(attempt.sent_at),
        instant_or_none(attempt.answered_at),
        attempt.outcome,
        attempt.error,
        attempt.answer,
    )


def retry_policy_members(policy: RetryPolicy) -> tuple[int, int, str, str, str, float, str]:
    """The members of a `RetryPolicyAnswer` of either API."""
    max_duration = format_duration(policy.max_duration_ms)
    return (
        policy.max_retries,
        policy.max_retries + 1,
        max_duration,
        max_duration,
        format_duration(policy.initial_interval_ms),
        policy.backoff_multiplier,
        format_duration(policy.max_interval_ms),
    )


def metadata_of(metadata: Raw | UnsetType) -> Raw | None:
    """JSON's null means no metadata."""
    if metadata is UNSET or bytes(metadata) == b"null":
        return None
    return metadata


def retry_policy_of(body: RetryPolicyMembers, policy: RetryPolicy = _DEFAULTS) -> RetryPolicy:
    """`policy` with the members that `body` gives. The service checks their ranges."""
    max_retries = _max_retries(body)
    if max_retries is not UNSET:
        policy = replace(policy, max_retries=max_retries)
    if body.backoff_multiplier is not UNSET:
        policy = replace(policy, backoff_multiplier=body.backoff_multiplier)
    max_duration_ms = _max_duration_ms(body)
    if max_duration_ms is not UNSET:
        policy = replace(policy, max_duration_ms=max_duration_ms)
    if body.initial_interval is not UNSET:
        initial_ms = _duration_ms("initial_interval", body.initial_interval)
        # The default longest wait gives way to a longer first one.
        longest_ms = max(policy.max_interval_ms, initial_ms)
        policy = replace(policy, initial_interval_ms=initial_ms, max_interval_ms=longest_ms)
    if body.max_interval is not UNSET:
        longest_ms = _duration_ms("max_interval", body.max_interval)
        if body.initial_interval is UNSET:
            policy = replace(
                policy, initial_interval_ms=min(policy.initial_interval_ms, longest_ms)
            )
        policy = replace(policy, max_interval_ms=longest_ms)
    return policy


def _max_retries(body: RetryPolicyMembers) -> int | UnsetType:
    if body.max_attempts is UNSET:
        return body.max_retries
    if not 1 <= body.max_attempts <= MAX_RETRIES + 1:
        raise InvalidInput("retry_policy.max_attempts", f"must be from 1 to {MAX_RETRIES + 1}")
    if body.max_retries is not UNSET and body.max_attempts != body.max_retries + 1:
        problem = "and max_retries contradict each other: attempts are one more than retries"
        raise InvalidInput("retry_policy.max_attempts", problem)
    return body.max_attempts - 1


def _max_duration_ms(body: RetryPolicyMembers) -> int | UnsetType:
    if body.max_attempts_duration is UNSET:
        if body.max_retry_attempts_duration is UNSET:
            return UNSET
        return _duration_ms("max_retry_attempts_duration", body.max_retry_attempts_duration)
    duration_ms = _duration_ms("max_attempts_duration", body.max_attempts_duration)
    if body.max_retry_attempts_duration is not UNSET:
        name = "max_retry_attempts_duration"
        if _duration_ms(name, body.max_retry_attempts_duration) != duration_ms:
            problem = f"and {name} contradict each other: they mean the same"
            raise InvalidInput("retry_policy.max_attempts_duration", problem)
    return duration_ms


def _duration_ms(name: str, text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise InvalidInput(f"retry_policy.{name}", str(error)) from None
