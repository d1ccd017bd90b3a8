"""Rows of timers: read, decoded and encoded."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.stores.sqlite.connections import Statements

Row = tuple[Any, ...]

_SHARED = (
    "timers.namespace, timers.id, timers.shard, timers.timer_uuid, timers.created_at,"
    " timers.delivery_id, timers.callback, timers.retry_policy, timers.metadata,"
    " timers.correlation_id, timers.command_order, timers.fingerprint, state.updated_at,"
    " state.execute_at, state.due_at, state.status, state.attempt, state.failures,"
    " state.claim_number, state.epoch, state.attempts, state.last_error"
)

_LIVE = f"SELECT timers.row_id, {_SHARED}, state.claimed_at, NULL"
_FINISHED = f"SELECT timers.row_id, {_SHARED}, NULL, state.executed_at"

LIVE_STATE = "live_timers AS state ON state.row_id = timers.row_id"
FINISHED_STATE = """
    finished_timers AS state INDEXED BY finished_timers_created
    ON state.namespace = timers.namespace AND state.status IN (2, 3, 4)
        AND state.created_at = timers.created_at AND state.row_id = timers.row_id
"""

_GET = f"""
    {_LIVE} FROM timers CROSS JOIN {LIVE_STATE} WHERE timers.namespace = ?1 AND timers.id = ?2
    UNION ALL
    {_FINISHED} FROM timers CROSS JOIN {FINISHED_STATE}
    WHERE timers.namespace = ?1 AND timers.id = ?2
"""

# Values: a JSON array of the keys of `live_timers` or `finished_timers`, which lead each row.
FETCH_LIVE = f"""
    {_LIVE} FROM timers CROSS JOIN {LIVE_STATE}
    WHERE timers.row_id IN (SELECT value FROM json_each(?1))
"""
FETCH_FINISHED = f"""
    {_FINISHED.replace("timers.row_id", "state.finish_number")}
    FROM finished_timers AS state CROSS JOIN timers ON timers.row_id = state.row_id
    WHERE state.finish_number IN (SELECT value FROM json_each(?1))
"""

# Values: a row id, then `asked_values`.
UPDATE_ASKED = """
    UPDATE timers
    SET delivery_id = ?2, callback = ?3, retry_policy = ?4, metadata = ?5, correlation_id = ?6,
        command_order = ?7, fingerprint = ?8
    WHERE row_id = ?1
"""

_encode = msgspec.json.Encoder().encode
_decode_callback = msgspec.json.Decoder(Callback).decode
_decode_retry_policy = msgspec.json.Decoder(RetryPolicy).decode
_decode_attempts = msgspec.json.Decoder(tuple[Attempt, ...]).decode

_POLICIES_REMEMBERED = 64
_policy_texts: dict[int, tuple[RetryPolicy, str]] = {}


def get_row(statements: Statements, key: TimerKey) -> Row | None:
    """Row id and columns of the timer, live or finished."""
    row: Row | None = statements.first(_GET, key.namespace, key.id)
    return row


def get_timer(statements: Statements, key: TimerKey) -> Timer | None:
    row = get_row(statements, key)
    return None if row is None else timer_of(row)


def _policy_text(policy: RetryPolicy) -> str:
    """Encode a policy once: thousands of timers share the policy object of their namespace."""
    known = _policy_texts.get(id(policy))
    if known is not None and known[0] is policy:
        return known[1]
    if len(_policy_texts) >= _POLICIES_REMEMBERED:
        _policy_texts.clear()
    text = _encode(policy).decode()
    _policy_texts[id(policy)] = (policy, text)
    return text


def asked_values(timer: Timer) -> Row:
    """The columns of `timers` that a change may write: delivery_id, callback, retry_policy,
    metadata, correlation_id, command_order, fingerprint."""
    policy, metadata = timer.retry_policy, timer.metadata
    return (
        timer.delivery_id,
        _encode(timer.callback).decode(),
        None if policy is None else _policy_text(policy),
        None if metadata is None else bytes(metadata).decode(),
        timer.correlation_id,
        timer.command_order,
        timer.fingerprint,
    )


def attempts_text(attempts: Sequence[Attempt]) -> str | None:
    return _encode(attempts).decode() if attempts else None


def timer_of(row: Row) -> Timer:
    """The timer of a row that `get_row`, FETCH_LIVE or FETCH_FINISHED returns."""
    (
        _, namespace, id, shard, timer_uuid, created_at, delivery_id, callback, retry_policy,
        metadata, correlation_id, command_order, fingerprint, updated_at, execute_at, due_at,
        status, attempt, failures, claim_number, epoch, attempts, last_error, claimed_at,
        executed_at,
    ) = row  # fmt: skip
    return Timer(
        key=TimerKey(namespace, id),
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
        callback=_decode_callback(callback),
        retry_policy=None if retry_policy is None else _decode_retry_policy(retry_policy),
        metadata=None if metadata is None else Raw(metadata.encode()),
        correlation_id=correlation_id,
        command_order=command_order,
        fingerprint=fingerprint,
        attempts=() if attempts is None else _decode_attempts(attempts),
        last_error=last_error,
        claimed_at=claimed_at,
        executed_at=executed_at,
    )
