"""From timers to the bodies of the platform API."""

from typing import assert_never

from msgspec import UNSET

from duetime.api.http.values import (
    STATUS_LABELS,
    attempt_members,
    instant_or_none,
    retry_policy_members,
)
from duetime.api.platform.types import (
    AttemptAnswer,
    BusCallbackConfig,
    CallbackConfig,
    ChangedTimer,
    HttpCallbackConfig,
    ListedTimer,
    NatsCallbackConfig,
    RetryPolicyAnswer,
    TimerDetail,
    TimerSummary,
)
from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.domain.instants import format_instant
from duetime.domain.security.redaction import shown_callback
from duetime.domain.timer import Timer

_TYPES: dict[type[Callback], str] = {
    HttpCallback: "http",
    NatsCallback: "nats",
    BusCallback: "bus",
}


def summary_of(timer: Timer) -> TimerSummary:
    return TimerSummary(
        timer.key.id,
        format_instant(timer.created_at),
        format_instant(timer.execute_at),
        _TYPES[type(timer.callback)],
        STATUS_LABELS[timer.status],
        instant_or_none(timer.executed_at),
    )


def listed_timer_of(timer: Timer, *, with_secrets: bool = False) -> ListedTimer:
    callback = timer.callback if with_secrets else shown_callback(timer.callback)
    return ListedTimer(
        id=timer.key.id,
        created_at=format_instant(timer.created_at),
        execute_at=format_instant(timer.execute_at),
        callback_type=_TYPES[type(timer.callback)],
        callback_target=_target_of(callback),
        status=STATUS_LABELS[timer.status],
        due_at=format_instant(timer.due_at),
        executed_at=instant_or_none(timer.executed_at),
        last_error=timer.last_error,
    )


def changed_timer_of(timer: Timer) -> ChangedTimer:
    return ChangedTimer(
        id=timer.key.id,
        created_at=format_instant(timer.created_at),
        updated_at=format_instant(timer.updated_at),
        execute_at=format_instant(timer.execute_at),
        callback_type=_TYPES[type(timer.callback)],
        status=STATUS_LABELS[timer.status],
        executed_at=instant_or_none(timer.executed_at),
    )


def detail_of(timer: Timer, *, with_secrets: bool = False) -> TimerDetail:
    callback = timer.callback if with_secrets else shown_callback(timer.callback)
    return TimerDetail(
        id=timer.key.id,
        created_at=format_instant(timer.created_at),
        updated_at=format_instant(timer.updated_at),
        execute_at=format_instant(timer.execute_at),
        callback_type=_TYPES[type(timer.callback)],
        callback_config=callback_config_of(callback),
        status=STATUS_LABELS[timer.status],
        last_error=timer.last_error,
        executed_at=instant_or_none(timer.executed_at),
        metadata=timer.metadata,
        retry_policy=(
            None
            if timer.retry_policy is None
            else RetryPolicyAnswer(*retry_policy_members(timer.retry_policy))
        ),
        due_at=format_instant(timer.due_at),
        attempt=timer.attempt,
        delivery_id=timer.delivery_id,
        attempts=[AttemptAnswer(*attempt_members(each)) for each in timer.attempts],
    )


def callback_config_of(callback: Callback) -> CallbackConfig:
    """The callback as the client gave it, without the members that were absent."""
    match callback:
        case HttpCallback():
            return HttpCallbackConfig(
                url=callback.url,
                headers=UNSET if callback.headers is None else callback.headers,
                payload=callback.payload,
            )
        case NatsCallback():
            return NatsCallbackConfig(
                topic=callback.topic,
                key=UNSET if callback.key is None else callback.key,
                headers=UNSET if callback.headers is None else callback.headers,
                payload=callback.payload,
                ack=True if callback.ack else UNSET,
            )
        case BusCallback():
            return BusCallbackConfig(payload=callback.payload)
        case _ as unreachable:
            assert_never(unreachable)


def _target_of(callback: Callback) -> str | None:
    match callback:
        case HttpCallback():
            return callback.url
        case NatsCallback():
            return callback.subject
        case BusCallback():
            return None
        case _ as unreachable:
            assert_never(unreachable)
