"""Timers as rows of a database: the columns, and structured values as JSON text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import Callback, HttpCallback
from duetime.domain.errors import TimerUnreadable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.ports.store import Position
from duetime.stores.stored_text import replace_surrogates
from duetime.stores.unreadable_rows import UNREADABLE_ROW, log_unreadable

COLUMNS = (
    "created_at", "updated_at", "execute_at", "due_at", "epoch", "command_order", "shard",
    "attempt", "failures", "claim_number", "timer_uuid", "namespace", "id", "delivery_id",
    "callback", "retry_policy", "metadata", "correlation_id", "fingerprint", "attempts",
    "last_error", "status", "claimed_at", "executed_at",
)  # fmt: skip
"""Columns of a timer, in the order that `timer_of` reads them."""

_CREATED_AT, _EXECUTE_AT, _TIMER_UUID, _NAMESPACE, _ID = map(
    COLUMNS.index, ("created_at", "execute_at", "timer_uuid", "namespace", "id")
)

_encode = msgspec.json.Encoder().encode
_decode_callback = msgspec.json.Decoder(Callback).decode
_decode_retry_policy = msgspec.json.Decoder(RetryPolicy).decode
_decode_attempts = msgspec.json.Decoder(tuple[Attempt, ...]).decode


def timer_of(row: Sequence[Any]) -> Timer:
    """The timer of a row with COLUMNS. Structured values may be text or bytes. Raises
    `TimerUnreadable`."""
    (
        created_at, updated_at, execute_at, due_at, epoch, command_order, shard, attempt, failures,
        claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy, metadata,
        correlation_id, fingerprint, attempts, last_error, status, claimed_at, executed_at,
    ) = row  # fmt: skip
    key = TimerKey(namespace, id)
    try:
        decoded_callback = _decode_callback(callback)
        policy = None if retry_policy is None else _decode_retry_policy(retry_policy)
        remembered = () if attempts is None else _decode_attempts(attempts)
        raw_metadata = None if metadata is None else _raw(metadata)
    except UNREADABLE_ROW as error:
        raise TimerUnreadable(key) from error
    return Timer(
        key=key,
        shard=ShardNumber(shard),
        timer_uuid=timer_uuid,
        delivery_id=delivery_id,
        status=TimerStatus(status),
        execute_at=Instant(execute_at),
        due_at=Instant(due_at),
        created_at=Instant(created_at),
        updated_at=Instant(updated_at),
        attempt=attempt,
        failures=failures,
        claim_number=claim_number,
        epoch=Epoch(epoch),
        callback=decoded_callback,
        retry_policy=policy,
        metadata=raw_metadata,
        correlation_id=correlation_id,
        command_order=command_order,
        fingerprint=fingerprint,
        attempts=remembered,
        last_error=last_error,
        claimed_at=claimed_at,
        executed_at=executed_at,
    )


def key_of(row: Sequence[Any]) -> TimerKey:
    """The key of the timer of a row with COLUMNS, readable or not."""
    return TimerKey(row[_NAMESPACE], row[_ID])


def _raw(metadata: str | bytes) -> Raw:
    if isinstance(metadata, bytes):
        metadata = metadata.decode()
    return Raw(metadata.encode())


def readable_timers(rows: Iterable[Sequence[Any]]) -> Iterator[Timer]:
    """The timers of rows with COLUMNS. Unreadable ones are logged and left out."""
    return (timer for timer in map(readable_timer, rows) if timer is not None)


def readable_timer(row: Sequence[Any]) -> Timer | None:
    """The timer of a row with COLUMNS. An unreadable one is logged."""
    try:
        return timer_of(row)
    except TimerUnreadable as unreadable:
        log_unreadable(unreadable.key, Instant(row[_CREATED_AT]), unreadable.__cause__)
        return None


def position_of(row: Sequence[Any]) -> Position:
    """The position of the timer of a row with COLUMNS, readable or not."""
    return Position(Instant(row[_EXECUTE_AT]), row[_TIMER_UUID])


def existing_timer_of(row: Sequence[Any]) -> tuple[Timer, bool]:
    """The timer of a row with COLUMNS, and whether it is readable. An unreadable one comes with
    blanks in place of its structured values."""
    try:
        return timer_of(row), True
    except TimerUnreadable:
        values = {**dict(zip(COLUMNS, row, strict=True)), **_BLANKS}
        return timer_of(list(values.values())), False


def callback_text(callback: Callback) -> str:
    return _encode(callback).decode()


def retry_policy_text(policy: RetryPolicy | None) -> str | None:
    return None if policy is None else _encode(policy).decode()


def metadata_text(metadata: Raw | None) -> str | None:
    return None if metadata is None else bytes(metadata).decode()


def attempts_text(attempts: Sequence[Attempt]) -> str | None:
    if not attempts:
        return None
    try:
        return _encode(attempts).decode()
    except UnicodeEncodeError:
        # An endpoint's error text may hold lone surrogates, which JSON cannot carry.
        return _encode([_without_surrogates(attempt) for attempt in attempts]).decode()


def _without_surrogates(attempt: Attempt) -> Attempt:
    error = attempt.error
    return replace(attempt, error=None if error is None else replace_surrogates(error))


_BLANKS = {
    "callback": callback_text(HttpCallback(url="")),
    "retry_policy": None,
    "metadata": None,
    "attempts": None,
}
