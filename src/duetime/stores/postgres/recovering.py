"""Recovering what a former owner left executing."""

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch
from duetime.domain.timer import Timer
from duetime.domain.transitions import Settlement, recovered
from duetime.ports.store import Leases
from duetime.stores.postgres.claim_statement import MAX_BATCH_BYTES
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.rows import TIMER_COLUMNS, timer_of
from duetime.stores.postgres.settling import settle

CLAIMING_ROLE = 0

# Whatever the former owner has claimed is visible here: taking its shards waited for it. What
# the client gave stays where it is, and may be large, so it is not read.
#
# Values: $1 and $2 the leased shards and their epochs, $3 the limit.
LEFT_BEHIND = f"""
    WITH pile AS MATERIALIZED (
        SELECT leased.epoch AS shard_epoch, timer.*
        FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, epoch)
        CROSS JOIN LATERAL (
            SELECT created_at, updated_at, execute_at, due_at, epoch, command_order, shard,
                   attempt, failures, claim_number, timer_uuid, namespace, id, delivery_id,
                   '{{"type":"bus"}}' AS callback, NULL AS retry_policy, NULL AS metadata,
                   NULL AS correlation_id, NULL::bytea AS fingerprint, attempts, last_error,
                   1::smallint AS status, claimed_at, NULL::bigint AS executed_at,
                   octet_length(callback) AS bytes
            FROM executing_timers
            WHERE executing_timers.shard = leased.shard AND executing_timers.epoch < leased.epoch
            OFFSET 0
        ) AS timer
        LIMIT $3
    ), measured AS (
        SELECT *, sum(bytes) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
        FROM pile
    )
    SELECT shard_epoch, {TIMER_COLUMNS} FROM measured
    WHERE coalesce(bytes_before, 0) < {MAX_BATCH_BYTES}
"""


async def recover(
    connections: Connections, leases: Leases, limit: int, history_step: int
) -> list[Instant]:
    """Read what is left behind, and settle it as lost under the new epochs.

    Nobody else can have settled it meanwhile but another recovery: the fences see to that.
    """
    rows = await connections.fetch(LEFT_BEHIND, list(leases), list(leases.values()), limit)
    shard_epochs = [Epoch(shard_epoch) for shard_epoch, *_ in rows]
    settlements = [_settlement_as_lost(timer_of(timer)) for _, *timer in rows]
    applied = await settle(
        connections, settlements, history_step, role=CLAIMING_ROLE, shard_epochs=shard_epochs
    )
    return [
        settlement.due_at
        for settlement, was_applied in zip(settlements, applied, strict=True)
        if was_applied
    ]


def _settlement_as_lost(executing: Timer) -> Settlement:
    timer = recovered(executing)
    return Settlement(
        namespace=timer.key.namespace,
        id=timer.key.id,
        created_at=executing.created_at,
        claim_number=executing.claim_number,
        epoch=executing.epoch,
        status=timer.status,
        execute_at=timer.execute_at,
        due_at=timer.due_at,
        delivery_id=timer.delivery_id,
        attempt=timer.attempt,
        failures=timer.failures,
        attempts=timer.attempts,
        last_error=timer.last_error,
        executed_at=timer.executed_at,
        updated_at=timer.updated_at,
    )
