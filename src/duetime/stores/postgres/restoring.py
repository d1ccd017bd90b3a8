"""Restoring timers with the state that they had elsewhere."""

from collections.abc import Sequence
from typing import Any

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import CreateRequest, CreateResult, OnExisting
from duetime.stores.postgres.connections import Connections, Row
from duetime.stores.postgres.creating import CREATE, create_or_find, create_values
from duetime.stores.postgres.history import write_with_history
from duetime.stores.postgres.tables import SHARED_COLUMNS, qualified, storable_or_none
from duetime.stores.timer_rows import attempts_text, key_of

_STATE_COLUMNS = "attempt, failures, claim_number, attempts, last_error"
_CREATED_COLUMNS = ", ".join(
    column for column in SHARED_COLUMNS.split(", ") if column not in _STATE_COLUMNS.split(", ")
)

# Values: arrays with the keys and states of timers that the same transaction has created. Each is
# looked up by its key, and written by its ctid: nobody else has seen its row. A plain join would
# read the whole table where the planner takes it for empty.
_BATCH = f"""
    SELECT held.place, {qualified("batch", _STATE_COLUMNS)}, batch.status, batch.executed_at
    FROM unnest(
        $1::text[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::text[],
        $7::text[], $8::smallint[], $9::bigint[]
    ) AS batch (namespace, id, {_STATE_COLUMNS}, status, executed_at)
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM pending_timers AS timer
        WHERE timer.namespace = batch.namespace AND timer.id = batch.id OFFSET 0
    ) AS held
"""

SET_STATE = f"""
    WITH batch AS MATERIALIZED ({_BATCH} WHERE batch.status = {int(TimerStatus.PENDING)})
    UPDATE pending_timers AS timer
    SET attempt = batch.attempt, failures = batch.failures, claim_number = batch.claim_number,
        attempts = batch.attempts, last_error = batch.last_error
    FROM (SELECT * FROM batch OFFSET 0) AS batch
    WHERE timer.ctid = batch.place
"""

MOVE_FINISHED = f"""
    WITH batch AS MATERIALIZED ({_BATCH} WHERE batch.status <> {int(TimerStatus.PENDING)}),
    gone AS (
        DELETE FROM pending_timers AS timer USING (SELECT * FROM batch OFFSET 0) AS batch
        WHERE timer.ctid = batch.place
        RETURNING {qualified("timer", _CREATED_COLUMNS)}, {qualified("batch", _STATE_COLUMNS)},
                  batch.status, batch.executed_at
    )
    INSERT INTO finished_timers ({_CREATED_COLUMNS}, {_STATE_COLUMNS}, status, executed_at)
    SELECT {_CREATED_COLUMNS}, {_STATE_COLUMNS}, status, executed_at FROM gone
"""


async def restore(
    connections: Connections, timers: Sequence[Timer], history_step: int
) -> list[CreateResult]:
    """Create the timers as pending, and give them their states in the same transaction: nobody sees
    them otherwise."""
    if not timers:
        return []
    requests = [CreateRequest(timer, OnExisting.KEEP) for timer in timers]
    values = create_values(requests)
    finished_at = [timer.updated_at for timer in timers if timer.status.is_finished]

    async def write() -> list[Row]:
        async with connections.borrow() as connection, connection.transaction():
            existing = await connection.fetch(CREATE, *values)
            left_alone = set(map(key_of, existing))
            states = state_values([timer for timer in timers if timer.key not in left_alone])
            await connection.execute(SET_STATE, *states)
            if finished_at:
                await connection.execute(MOVE_FINISHED, *states)
        return existing

    return await create_or_find(
        requests,
        requests,
        lambda: write_with_history(connections, history_step, finished_at, write),
    )


def state_values(timers: Sequence[Timer]) -> list[list[Any]]:
    """Values for SET_STATE and MOVE_FINISHED."""
    return [
        [timer.key.namespace for timer in timers],
        [timer.key.id for timer in timers],
        [timer.attempt for timer in timers],
        [timer.failures for timer in timers],
        [timer.claim_number for timer in timers],
        [attempts_text(timer.attempts) for timer in timers],
        [storable_or_none(timer.last_error) for timer in timers],
        [timer.status for timer in timers],
        [timer.executed_at for timer in timers],
    ]
