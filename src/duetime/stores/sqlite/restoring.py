"""Restoring timers with the state that they had elsewhere."""

from collections.abc import Sequence

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import CreateResult, Existence
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.creating import NewTimer, create_timers
from duetime.stores.timer_rows import attempts_text

# Values here and below: the key, then `_state_values`.
_SET_STATE = """
    UPDATE live_timers
    SET attempt = ?3, failures = ?4, claim_number = ?5, attempts = ?6, last_error = ?7
    WHERE row_id = (SELECT row_id FROM timers WHERE namespace = ?1 AND id = ?2)
"""

_COPY_TO_FINISHED = """
    INSERT INTO finished_timers (
        row_id, namespace, timer_uuid, created_at, updated_at, execute_at, due_at, epoch,
        attempt, failures, claim_number, attempts, last_error, status, executed_at)
    SELECT row_id, namespace, timer_uuid, created_at, updated_at, execute_at, due_at, epoch,
           ?3, ?4, ?5, ?6, ?7, ?8, ?9
    FROM live_timers WHERE row_id = (SELECT row_id FROM timers WHERE namespace = ?1 AND id = ?2)
"""

_DELETE_LIVE = """
    DELETE FROM live_timers
    WHERE row_id = (SELECT row_id FROM timers WHERE namespace = ?1 AND id = ?2)
"""


def restore_timers(transaction: Transaction, new: Sequence[NewTimer]) -> list[CreateResult | None]:
    """Create the timers, then give the new ones their state. As in `create_timers`, None stands for
    a timer that exists."""
    results = create_timers(transaction, new)
    for result in results:
        if result is not None and result.existence is Existence.CREATED:
            _give_state(transaction, result.timer)
    return results


def _give_state(transaction: Transaction, timer: Timer) -> None:
    values = _state_values(timer)
    if timer.status.is_finished:
        finished = (timer.status, timer.executed_at)
        transaction.execute(_COPY_TO_FINISHED, *timer.key, *values, *finished)
        transaction.execute(_DELETE_LIVE, *timer.key)
        transaction.moved(timer.key.namespace, TimerStatus.PENDING, timer.status, 1)
    elif any(values):
        transaction.execute(_SET_STATE, *timer.key, *values)


def _state_values(timer: Timer) -> tuple[object, ...]:
    return (
        timer.attempt,
        timer.failures,
        timer.claim_number,
        attempts_text(timer.attempts),
        timer.last_error,
    )
