"""From the bodies of the platform API to what the service takes."""

from typing import TypeVar, assert_never

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from duetime.api.decoding import BodyDecoder
from duetime.api.instant_text import parse_instant
from duetime.api.platform_types import (
    CallbackBody,
    CreateTimerBody,
    HttpCallbackBody,
    NatsCallbackBody,
    RetryPolicyBody,
    UpdateTimerBody,
)
from duetime.domain.callback import Callback, HttpCallback, NatsCallback
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import parse_duration_ms
from duetime.domain.retry import RetryPolicy
from duetime.service.new_timer import NewTimer

T = TypeVar("T", int, str)

_CHOICES = {"callback.type": "'http' or 'nats'"}

decode_create = BodyDecoder(CreateTimerBody, _CHOICES).decode
decode_update = BodyDecoder(UpdateTimerBody, _CHOICES).decode


def new_timer_of(body: CreateTimerBody) -> NewTimer:
    policy = body.retry_policy
    return NewTimer(
        execute_at=parse_instant("execute_at", body.execute_at),
        callback=callback_of(body.callback),
        metadata=metadata_of(body.metadata),
        retry_policy=None if policy is None else retry_policy_of(policy),
        idempotency_key=body.idempotency_key,
    )


def callback_of(body: CallbackBody) -> Callback:
    match body:
        case HttpCallbackBody():
            return HttpCallback(url=body.url, headers=body.headers, payload=body.payload)
        case NatsCallbackBody():
            return NatsCallback(
                topic=body.topic, key=body.key, headers=body.headers, payload=body.payload
            )
        case _ as unreachable:
            assert_never(unreachable)


def metadata_of(metadata: Raw | UnsetType) -> Raw | None:
    """JSON's null is no metadata."""
    if metadata is UNSET or bytes(metadata) == b"null":
        return None
    return metadata


def retry_policy_of(body: RetryPolicyBody) -> RetryPolicy:
    """The policy with defaults for what is absent. Its ranges are the service's business."""
    policy = RetryPolicy()
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


def _max_retries(body: RetryPolicyBody) -> int | UnsetType:
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
