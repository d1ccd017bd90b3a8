"""Changing, canceling and removing single timers, if they are pending."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import UNSET

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, applies
from duetime.ports.store import ConditionalResult
from duetime.stores.postgres.connections import Connections, Row
from duetime.stores.postgres.history import write_with_history
from duetime.stores.postgres.reading import get_timer
from duetime.stores.postgres.rows import (
    FINISHED_AS_TIMER,
    HAS_KEY,
    PENDING_AS_TIMER,
    SHARED_COLUMNS,
    callback_text,
    is_storable,
    metadata_text,
    retry_policy_text,
    timer_of,
)

_MAX_TRIES = 10
"""How often a timer may go away and come back while we look before we give up."""

# Each of $5, $7, $9, $11, $14 and $17 says whether the value after it replaces the stored one.
CHANGE = f"""
    UPDATE pending_timers
    SET updated_at = $3,
        execute_at = CASE WHEN $5 THEN $6 ELSE execute_at END,
        due_at = CASE WHEN $5 THEN $6 ELSE due_at END,
        callback = CASE WHEN $7 THEN $8 ELSE callback END,
        delivery_id = CASE WHEN $5 OR $7 THEN $4 ELSE delivery_id END,
        attempt = CASE WHEN $5 OR $7 THEN 0 ELSE attempt END,
        failures = CASE WHEN $5 OR $7 THEN 0 ELSE failures END,
        metadata = CASE WHEN $9 THEN $10 ELSE metadata END,
        retry_policy = CASE WHEN $11 THEN $12 ELSE retry_policy END,
        correlation_id = CASE WHEN $14 THEN $15 ELSE correlation_id END,
        command_order = CASE WHEN $17 THEN $18 ELSE command_order END
    WHERE ($13::text IS NULL OR delivery_id = $13)
      AND ($16::bigint IS NULL OR updated_at = $16) AND {HAS_KEY}
    RETURNING {PENDING_AS_TIMER}
"""

CANCEL = f"""
    WITH gone AS (
        DELETE FROM pending_timers WHERE {HAS_KEY} RETURNING {SHARED_COLUMNS}
    )
    INSERT INTO finished_timers ({SHARED_COLUMNS}, status)
    SELECT {SHARED_COLUMNS.replace("updated_at", "$3")}, {int(TimerStatus.CANCELED)} FROM gone
    RETURNING {FINISHED_AS_TIMER}
"""

REMOVE = f"""
    WITH gone AS (
        DELETE FROM pending_timers WHERE {HAS_KEY}
        RETURNING {PENDING_AS_TIMER}
    ), booked AS (
        UPDATE ledger SET removed = removed + 1
        WHERE slot = pg_backend_pid() % 256 AND (SELECT count(*) FROM gone) = 1
    )
    SELECT * FROM gone
"""


async def change_if_pending(
    connections: Connections, key: TimerKey, change: Change
) -> ConditionalResult | None:
    return await _apply(
        connections,
        key,
        lambda: connections.fetch_one(CHANGE, *change_values(key, change)),
        lambda timer: applies(change, timer),
    )


def change_values(key: TimerKey, change: Change) -> list[Any]:
    values: list[Any] = [*key, change.updated_at, change.delivery_id]
    values += (False, None) if change.execute_at is UNSET else (True, change.execute_at)
    values += (False, None) if change.callback is UNSET else (True, callback_text(change.callback))
    values += (False, None) if change.metadata is UNSET else (True, metadata_text(change.metadata))
    if change.retry_policy is UNSET:
        values += (False, None)
    else:
        values += (True, retry_policy_text(change.retry_policy))
    values.append(change.only_firing)
    new_correlation = change.correlation_id
    values += (False, None) if new_correlation is UNSET else (True, new_correlation)
    values.append(change.only_updated_at)
    new_order = change.command_order
    values += (False, None) if new_order is UNSET else (True, new_order)
    return values


async def cancel_if_pending(
    connections: Connections, key: TimerKey, now: Instant, history_step: int
) -> ConditionalResult | None:
    async def cancel() -> Row | None:
        return await write_with_history(
            connections, history_step, [now], lambda: connections.fetch_one(CANCEL, *key, now)
        )

    return await _apply(connections, key, cancel)


async def remove_if_pending(connections: Connections, key: TimerKey) -> ConditionalResult | None:
    return await _apply(connections, key, lambda: connections.fetch_one(REMOVE, *key))


async def _apply(
    connections: Connections,
    key: TimerKey,
    write: Callable[[], Awaitable[Row | None]],
    may_apply: Callable[[Timer], bool] = lambda timer: timer.status is TimerStatus.PENDING,
) -> ConditionalResult | None:
    """Write, and if the timer was not pending say what it is.

    It may have come back, by a retry, between the write and the look: then write again.
    """
    if not is_storable(key):
        return None
    for _ in range(_MAX_TRIES):
        row = await write()
        if row is not None:
            return ConditionalResult(True, timer_of(row))
        timer: Timer | None = await get_timer(connections, key)
        if timer is None:
            return None
        if not may_apply(timer):
            return ConditionalResult(False, timer)
    raise StoreUnavailable(f"timer {key.id!r} changes too fast to be written: try again")
