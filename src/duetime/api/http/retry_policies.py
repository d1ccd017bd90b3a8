"""From the retry policies of either API to ours. Fields are named as in the platform API."""

from typing import Protocol, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import parse_duration_ms
from duetime.domain.retry import RetryPolicy

T = TypeVar("T", int, str)

DEFAULTS = RetryPolicy()


class RetryPolicyMembers(Protocol):
    """What a policy is given as, in either spelling."""

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


def retry_policy_of(body: RetryPolicyMembers, policy: RetryPolicy = DEFAULTS) -> RetryPolicy:
    """The policy with the given members; what is absent is as in `policy`. Its ranges are the
    service's business."""
    max_retries = _max_retries(body)
    if max_retries is not UNSET:
        policy = replace(policy, max_retries=max_retries)
    if body.backoff_multiplier is not UNSET:
        policy = replace(policy, backoff_multiplier=body.backoff_multiplier)
    max_duration = _either(
        "max_retry_attempts_duration",
        body.max_retry_attempts_duration,
        "max_attempts_duration",
        body.max_attempts_duration,
    )
    if max_duration is not None:
        policy = replace(policy, max_duration_ms=_duration_ms(*max_duration))
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
    given = _either("max_retries", body.max_retries, "max_attempts", body.max_attempts)
    if given is None:
        return UNSET
    name, number = given
    if name == "max_retries":
        return number
    if not 1 <= number <= 101:
        raise InvalidInput("retry_policy.max_attempts", "must be from 1 to 101")
    return number - 1


def _either(
    name: str, value: T | UnsetType, other_name: str, other: T | UnsetType
) -> tuple[str, T] | None:
    """The one of two spellings that was used."""
    if value is not UNSET and other is not UNSET:
        problem = f"and {other_name} mean the same: give one of them"
        raise InvalidInput(f"retry_policy.{name}", problem)
    if value is not UNSET:
        return name, value
    if other is not UNSET:
        return other_name, other
    return None


def _duration_ms(name: str, text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise InvalidInput(f"retry_policy.{name}", str(error)) from None
