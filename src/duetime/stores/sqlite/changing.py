"""Changing, canceling and removing single timers, if they are pending."""

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, applies, canceled, changed
from duetime.ports.store import ConditionalResult
from duetime.stores.sqlite.filing import file_key
from duetime.stores.sqlite.reading import get_row
from duetime.stores.sqlite.rows import UPDATE_ASKED, asked_values, timer_of
from duetime.stores.sqlite.transaction import Transaction

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


def change_if_pending(
    transaction: Transaction, key: TimerKey, change: Change
) -> ConditionalResult | None:
    row_id, timer = _find(transaction, key)
    if timer is None or not applies(change, timer):
        return _refused(timer)
    after = changed(timer, change)
    transaction.execute(UPDATE_ASKED, row_id, *asked_values(after))
    state = (after.updated_at, after.execute_at, after.due_at, after.attempt, after.failures)
    transaction.execute(_UPDATE_STATE, row_id, *state)
    return ConditionalResult(True, after)


def cancel_if_pending(
    transaction: Transaction, key: TimerKey, now: Instant
) -> ConditionalResult | None:
    row_id, timer = _find(transaction, key)
    if timer is None or timer.status is not TimerStatus.PENDING:
        return _refused(timer)
    transaction.execute(_COPY_CANCELED, row_id, now)
    transaction.execute(_DELETE_LIVE, row_id)
    transaction.moved(key.namespace, TimerStatus.PENDING, TimerStatus.CANCELED, 1)
    return ConditionalResult(True, canceled(timer, now))


def remove_if_pending(transaction: Transaction, key: TimerKey) -> ConditionalResult | None:
    row_id, timer = _find(transaction, key)
    if timer is None or timer.status is not TimerStatus.PENDING:
        return _refused(timer)
    transaction.execute(_DELETE_LIVE, row_id)
    transaction.execute(_DELETE_TIMER, row_id)
    transaction.count(key.namespace, TimerStatus.PENDING, -1)
    return ConditionalResult(True, timer)


def _find(transaction: Transaction, key: TimerKey) -> tuple[int, Timer | None]:
    file_key(transaction, key)
    row = get_row(transaction, key)
    return (0, None) if row is None else (row[0], timer_of(row))


def _refused(timer: Timer | None) -> ConditionalResult | None:
    return None if timer is None else ConditionalResult(False, timer)
