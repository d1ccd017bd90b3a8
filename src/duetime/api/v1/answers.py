"""From timers to the bodies of the v1 API."""

from functools import lru_cache
from typing import Literal

from msgspec import UNSET, UnsetType, json

from duetime.api.http.answers import JSON_TYPE, Answer, Headers
from duetime.api.http.values import (
    STATUS_LABELS,
    attempt_members,
    instant_or_none,
    retry_policy_members,
)
from duetime.api.v1.answer_types import AttemptAnswer, RetryPolicyAnswer, TimerAnswer
from duetime.domain.callback import BusCallback, Callback, HttpCallback
from duetime.domain.instants import format_duration, format_instant
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import shown_callback
from duetime.domain.timer import Timer

_encode = json.Encoder().encode


def ok(body: object, headers: Headers = JSON_TYPE) -> Answer:
    return Answer(200, _encode(body), headers)


NO_CONTENT = Answer(204, b"", ())


def timer_answer(timer: Timer, default_timeout_ms: int, with_secrets: bool = False) -> TimerAnswer:
    """`default_timeout_ms` applies to timers without a timeout of their own."""
    callback = timer.callback if with_secrets else shown_callback(timer.callback)
    timeout_ms = callback.timeout_ms or default_timeout_ms
    http = callback if isinstance(callback, HttpCallback) else None
    return TimerAnswer(
        id=timer.key.id,
        namespace=timer.key.namespace,
        execute_at=format_instant(timer.execute_at),
        callback_url=None if http is None else http.url,
        callback_type=UNSET if http is not None else _other_type(callback),
        callback_protocol=UNSET if http is None else http.protocol.value,
        callback_headers=_headers(http),
        payload=None if callback.payload is UNSET else callback.payload,
        retry_policy=retry_policy_answer(timer.retry_policy),
        callback_timeout=_duration(timeout_ms),
        callback_timeout_seconds=_seconds(timeout_ms),
        created_at=format_instant(timer.created_at),
        updated_at=format_instant(timer.updated_at),
        executed_at=instant_or_none(timer.executed_at),
        status=STATUS_LABELS[timer.status],
        attempts=[AttemptAnswer(*attempt_members(each)) for each in timer.attempts],
        last_error=timer.last_error,
        next_attempt_at=None if timer.status.is_finished else format_instant(timer.due_at),
        delivery_id=timer.delivery_id,
        correlation_id=UNSET if timer.correlation_id is None else timer.correlation_id,
        metadata=UNSET if timer.metadata is None else timer.metadata,
    )


@lru_cache(1_024)
def retry_policy_answer(policy: RetryPolicy | None) -> RetryPolicyAnswer | None:
    if policy is None:
        return None
    return RetryPolicyAnswer(*retry_policy_members(policy))


_duration = lru_cache(1_024)(format_duration)


@lru_cache(1_024)
def _seconds(duration_ms: int) -> int | float:
    """Whole seconds are whole in JSON too: typed clients do not take `30.0` for an integer."""
    seconds, rest_ms = divmod(duration_ms, 1_000)
    return duration_ms / 1_000 if rest_ms else seconds


def _other_type(callback: Callback) -> Literal["nats", "bus"]:
    return "bus" if isinstance(callback, BusCallback) else "nats"


def _headers(callback: HttpCallback | None) -> dict[str, str] | UnsetType:
    return UNSET if callback is None or callback.headers is None else callback.headers
