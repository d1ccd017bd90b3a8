"""Settling attempts in batches: moving timers out of those that execute."""

from collections.abc import Sequence
from typing import Any

from duetime.domain.keys import Epoch
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.history import write_with_history
from duetime.stores.postgres.rows import (
    SHARED_COLUMNS,
    attempts_text,
    qualified,
    storable_or_none,
)

SETTLING_ROLE = 1

# The state that a timer leaves with; everything else it keeps.
_NEW_COLUMNS = (
    "execute_at, due_at, delivery_id, attempt, failures, attempts, last_error, updated_at"
)
_KEPT_COLUMNS = ", ".join(
    column for column in SHARED_COLUMNS.split(", ") if column not in _NEW_COLUMNS.split(", ")
)


# Values: $1 the role of the fences; then arrays with an element for each timer: $2 and $3 its
# key, $4 to $6 its creation and the claim number and epoch it executes under, $7 the epoch its
# shard must have, and then the state it gets.
#
# As in a claim, what was found in a snapshot is checked again under the locks of the fences, and
# deleted from there. A row in this table is never updated, so it is still what was found, or it
# is gone. Inserts among the pending timers are in the order of their keys, as all their locks.
SETTLE = f"""
    WITH found AS MATERIALIZED (
        SELECT DISTINCT ON (place) place, shard, status, {_NEW_COLUMNS}, executed_at, position
        FROM unnest(
            $2::text[], $3::text[], $4::bigint[], $5::integer[], $6::bigint[], $7::bigint[],
            $8::smallint[], $9::bigint[], $10::bigint[], $11::text[], $12::integer[],
            $13::integer[], $14::text[], $15::text[], $16::bigint[], $17::bigint[]
        ) WITH ORDINALITY AS batch (
            namespace, id, created_at, claim_number, epoch, shard_epoch, status, {_NEW_COLUMNS},
            executed_at, position)
        CROSS JOIN LATERAL (
            SELECT ctid AS place, shard FROM executing_timers AS timer
            WHERE timer.namespace = batch.namespace AND timer.id = batch.id
              AND timer.claim_number = batch.claim_number AND timer.epoch = batch.epoch
              AND timer.created_at = batch.created_at
            OFFSET 0
        ) AS executing
        WHERE shard_epoch = (SELECT before.epoch FROM shard_fences AS before
                             WHERE before.role = $1 AND before.shard = executing.shard)
        ORDER BY place, position
    ), fence AS MATERIALIZED (
        SELECT shard, epoch FROM shard_fences
        WHERE role = $1 AND shard = ANY (ARRAY(SELECT DISTINCT shard FROM found))
        ORDER BY shard FOR NO KEY UPDATE
    ), lost AS MATERIALIZED (
        SELECT shard FROM fence
        WHERE epoch <> (SELECT before.epoch FROM shard_fences AS before
                        WHERE before.role = $1 AND before.shard = fence.shard)
    ), gone AS (
        DELETE FROM executing_timers AS timer
        USING (
            SELECT * FROM found WHERE shard <> ALL (ARRAY(SELECT shard FROM lost)) OFFSET 0
        ) AS doomed
        WHERE timer.ctid = doomed.place
        RETURNING {qualified("timer", _KEPT_COLUMNS)}, {qualified("doomed", _NEW_COLUMNS)},
                  doomed.status, doomed.executed_at, doomed.position
    ), pending AS (
        INSERT INTO pending_timers ({_KEPT_COLUMNS}, {_NEW_COLUMNS})
        SELECT {_KEPT_COLUMNS}, {_NEW_COLUMNS} FROM gone WHERE status = {int(TimerStatus.PENDING)}
        ORDER BY namespace, id
    ), finished AS (
        INSERT INTO finished_timers ({_KEPT_COLUMNS}, {_NEW_COLUMNS}, status, executed_at)
        SELECT {_KEPT_COLUMNS}, {_NEW_COLUMNS}, status, executed_at FROM gone
        WHERE status <> {int(TimerStatus.PENDING)}
    )
    SELECT array_agg(position) FROM gone
"""


async def settle(
    connections: Connections,
    settlements: Sequence[Settlement],
    history_step: int,
    *,
    role: int = SETTLING_ROLE,
    shard_epochs: Sequence[Epoch] | None = None,
) -> list[bool]:
    """Apply those whose timer is the one they mean and executes under their claim number and
    epoch.

    The timer's shard must have the same epoch, or the one in `shard_epochs` if that is given.
    """
    if not settlements:
        return []
    values = settlement_values(settlements, shard_epochs)
    finished_at = [
        settlement.updated_at
        for settlement in settlements
        if settlement.status is not TimerStatus.PENDING
    ]
    positions = await write_with_history(
        connections,
        history_step,
        finished_at,
        lambda: connections.fetch_value(SETTLE, role, *values),
    )
    applied = [False] * len(settlements)
    for position in positions or ():
        applied[position - 1] = True
    return applied


def settlement_values(
    settlements: Sequence[Settlement], shard_epochs: Sequence[Epoch] | None = None
) -> list[list[Any]]:
    epochs = [settlement.epoch for settlement in settlements]
    return [
        [settlement.namespace for settlement in settlements],
        [settlement.id for settlement in settlements],
        [settlement.created_at for settlement in settlements],
        [settlement.claim_number for settlement in settlements],
        epochs,
        epochs if shard_epochs is None else list(shard_epochs),
        [settlement.status for settlement in settlements],
        [settlement.execute_at for settlement in settlements],
        [settlement.due_at for settlement in settlements],
        [settlement.delivery_id for settlement in settlements],
        [settlement.attempt for settlement in settlements],
        [settlement.failures for settlement in settlements],
        [attempts_text(settlement.attempts) for settlement in settlements],
        [storable_or_none(settlement.last_error) for settlement in settlements],
        [settlement.updated_at for settlement in settlements],
        [settlement.executed_at for settlement in settlements],
    ]
