"""Changing, canceling and removing pending timers, and redriving failed ones."""

from collections.abc import Sequence

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import (
    Change,
    Redrive,
    applies,
    canceled,
    changed,
    may_cancel,
    redriven,
)
from duetime.ports.store import ConditionalResult
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.tables import (
    FETCH_FINISHED,
    FINISHED_STATE,
    UPDATE_ASKED,
    asked_values,
    find_timer,
)
from duetime.stores.timer_rows import readable_timers

_UPDATE_STATE = """
    UPDATE live_timers
    SET updated_at = ?2, execute_at = ?3, due_at = ?4, attempt = ?5, failures = ?6
    WHERE row_id = ?1
"""

_COPY_CANCELED = """
    INSERT INTO finished_timers (
        row_id, namespace, timer_uuid, created_at, updated_at, execute_at, due_at, status,
        attempt, failures, claim_number, epoch, attempts, last_error)
    SELECT row_id, namespace, timer_uuid, created_at, ?2, execute_at, due_at, 4, attempt,
           failures, claim_number, epoch, attempts, last_error
    FROM live_timers WHERE row_id = ?1
"""

_DELETE_LIVE = "DELETE FROM live_timers WHERE row_id = ?1"
_DELETE_TIMER = "DELETE FROM timers WHERE row_id = ?1"

# Positions of the redrives whose timers are failed, with the finish numbers.
_FIND_FAILED = f"""
    SELECT batch.key, state.finish_number
    FROM json_each(?1) AS batch
    CROSS JOIN timers INDEXED BY timers_key
        ON timers.namespace = batch.value ->> 0 AND timers.id = batch.value ->> 1
    CROSS JOIN {FINISHED_STATE} AND state.status = 3
    ORDER BY batch.key
"""

_COPY_TO_LIVE = """
    INSERT INTO live_timers (
        row_id, namespace, shard, timer_uuid, created_at, updated_at, execute_at, due_at,
        claim_number, epoch, attempts, last_error)
    SELECT finished.row_id, finished.namespace, timers.shard, finished.timer_uuid,
           finished.created_at, ?2, finished.execute_at, max(?2, finished.execute_at),
           finished.claim_number, finished.epoch, finished.attempts, finished.last_error
    FROM json_each(?1) AS batch
    CROSS JOIN finished_timers AS finished ON finished.finish_number = batch.value ->> 0
    CROSS JOIN timers ON timers.row_id = finished.row_id
"""

_DELETE_FINISHED = """
    DELETE FROM finished_timers WHERE finish_number IN (SELECT value ->> 0 FROM json_each(?1))
"""

_SET_DELIVERY_ID = """
    UPDATE timers SET delivery_id = batch.value ->> 1
    FROM json_each(?1) AS batch
    JOIN finished_timers AS finished ON finished.finish_number = batch.value ->> 0
    WHERE timers.row_id = finished.row_id
"""

_encode = msgspec.json.Encoder().encode


def change_if_pending(
    transaction: Transaction, key: TimerKey, change: Change
) -> ConditionalResult | None:
    row_id, timer = find_timer(transaction, key) or (0, None)
    if timer is None or not applies(change, timer):
        return _refused(timer)
    after = changed(timer, change)
    transaction.execute(UPDATE_ASKED, row_id, *asked_values(after))
    state = (after.updated_at, after.execute_at, after.due_at, after.attempt, after.failures)
    transaction.execute(_UPDATE_STATE, row_id, *state)
    return ConditionalResult(True, after)


def cancel_if_pending(
    transaction: Transaction, key: TimerKey, now: Instant, only_updated_at: Instant | None = None
) -> ConditionalResult | None:
    row_id, timer = find_timer(transaction, key) or (0, None)
    if timer is None or not may_cancel(timer, only_updated_at):
        return _refused(timer)
    transaction.execute(_COPY_CANCELED, row_id, now)
    transaction.execute(_DELETE_LIVE, row_id)
    transaction.moved(key.namespace, TimerStatus.PENDING, TimerStatus.CANCELED, 1)
    return ConditionalResult(True, canceled(timer, now))


def remove_if_pending(transaction: Transaction, key: TimerKey) -> ConditionalResult | None:
    row_id, timer = find_timer(transaction, key) or (0, None)
    if timer is None or timer.status is not TimerStatus.PENDING:
        return _refused(timer)
    transaction.execute(_DELETE_LIVE, row_id)
    transaction.execute(_DELETE_TIMER, row_id)
    transaction.count(key.namespace, TimerStatus.PENDING, -1)
    return ConditionalResult(True, timer)


def redrive_if_failed(
    transaction: Transaction, redrives: Sequence[Redrive], now: Instant
) -> list[Timer | None]:
    answers: list[Timer | None] = [None] * len(redrives)
    first_positions: dict[int, int] = {}
    keys = _encode([redrive.key for redrive in redrives]).decode()
    for position, finish_number in transaction.execute(_FIND_FAILED, keys):
        first_positions.setdefault(finish_number, position)
    if not first_positions:
        return answers
    moved: list[tuple[int, str]] = []
    for number, *row in transaction.execute(FETCH_FINISHED, str(list(first_positions))):
        position = first_positions[number]
        for failed in readable_timers([row]):
            timer = redriven(failed, redrives[position], now)
            answers[position] = timer
            moved.append((number, timer.delivery_id))
            transaction.moved(timer.key.namespace, TimerStatus.FAILED, TimerStatus.PENDING, 1)
    batch = _encode(moved).decode()
    transaction.execute(_COPY_TO_LIVE, batch, now)
    transaction.execute(_SET_DELIVERY_ID, batch)
    transaction.execute(_DELETE_FINISHED, batch)
    return answers


def _refused(timer: Timer | None) -> ConditionalResult | None:
    return None if timer is None else ConditionalResult(False, timer)
