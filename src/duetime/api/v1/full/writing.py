"""From timers to full lines."""

from msgspec import UNSET, Raw, UnsetType

from duetime.api.http.values import STATUS_LABELS, instant_or_none, retry_policy_members
from duetime.api.v1.full.types import (
    FullAttempt,
    FullBusCallback,
    FullCallback,
    FullHttpCallback,
    FullNatsCallback,
    FullTimer,
    FullWait,
)
from duetime.api.v1.request_types import RetryPolicyBody
from duetime.domain.callback import BusCallback, Callback, HttpCallback, Payload
from duetime.domain.instants import format_duration, format_instant
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import shown_callback
from duetime.domain.timer import Attempt, Timer

_Member = Raw | UnsetType
_Text = str | UnsetType


def full_timer(timer: Timer, with_secrets: bool = False) -> FullTimer:
    callback = timer.callback if with_secrets else shown_callback(timer.callback)
    # A fingerprint covers the secrets, too: a weak one could be guessed from it.
    fingerprint = timer.fingerprint if callback == timer.callback else None
    namespace, id = timer.key
    metadata, metadata_text = _json_or_text(UNSET if timer.metadata is None else timer.metadata)
    return FullTimer(
        namespace=namespace,
        id=id,
        status=STATUS_LABELS[timer.status],
        execute_at=format_instant(timer.execute_at),
        due_at=format_instant(timer.due_at),
        created_at=format_instant(timer.created_at),
        updated_at=format_instant(timer.updated_at),
        executed_at=instant_or_none(timer.executed_at),
        claimed_at=instant_or_none(timer.claimed_at),
        delivery_id=timer.delivery_id,
        callback=_callback(callback),
        retry_policy=_policy(timer.retry_policy),
        attempt=timer.attempt,
        failures=timer.failures,
        claim_number=timer.claim_number,
        attempts=tuple(map(_attempt, timer.attempts)),
        last_error=timer.last_error,
        metadata=metadata,
        metadata_text=metadata_text,
        correlation_id=timer.correlation_id,
        command_order=timer.command_order,
        fingerprint=None if fingerprint is None else fingerprint.hex(),
    )


def _callback(callback: Callback) -> FullCallback:
    timeout = None if callback.timeout_ms is None else format_duration(callback.timeout_ms)
    payload, payload_text = _json_or_text(callback.payload)
    if isinstance(callback, BusCallback):
        return FullBusCallback(
            payload=payload,
            payload_text=payload_text,
            timeout=timeout,
            traceparent=callback.traceparent,
        )
    if isinstance(callback, HttpCallback):
        return FullHttpCallback(
            url=callback.url,
            headers=callback.headers,
            payload=payload,
            payload_text=payload_text,
            timeout=timeout,
            protocol=callback.protocol.value,
            traceparent=callback.traceparent,
        )
    return FullNatsCallback(
        topic=callback.topic,
        key=callback.key,
        headers=callback.headers,
        payload=payload,
        payload_text=payload_text,
        timeout=timeout,
        ack=callback.ack,
        traceparent=callback.traceparent,
    )


def _policy(policy: RetryPolicy | None) -> RetryPolicyBody | None:
    return None if policy is None else RetryPolicyBody(*retry_policy_members(policy))


def _attempt(attempt: Attempt) -> FullAttempt:
    return FullAttempt(
        number=attempt.number,
        due_at=format_instant(attempt.due_at),
        claimed_at=format_instant(attempt.claimed_at),
        sent_at=instant_or_none(attempt.sent_at),
        answered_at=instant_or_none(attempt.answered_at),
        outcome=attempt.recorded_outcome,
        error=attempt.error,
        answer=attempt.answer,
        waits=tuple(FullWait(*wait) for wait in attempt.waits),
    )


def _json_or_text(value: Payload) -> tuple[_Member, _Text]:
    """The value as JSON, or as text if it has line breaks, which a line cannot hold."""
    if value is UNSET:
        return UNSET, UNSET
    text = bytes(value)
    return (UNSET, text.decode()) if b"\n" in text or b"\r" in text else (value, UNSET)
