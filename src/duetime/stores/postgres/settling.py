"""Settling attempts in batches, and recovering timers that a former owner left executing."""

from collections.abc import Sequence
from typing import Any

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Settlement, recovered
from duetime.ports.store import Leases
from duetime.stores.claim_rows import MAX_BATCH_BYTES
from duetime.stores.postgres.claiming import CLAIMING_ROLE
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.history import write_with_history
from duetime.stores.postgres.tables import (
    SHARED_COLUMNS,
    TIMER_COLUMNS,
    qualified,
    storable_or_none,
)
from duetime.stores.timer_rows import attempts_text, readable_timers

SETTLING_ROLE = 1
"""Role of the fences that settlements lock."""

# Columns that a settlement writes; a timer keeps all others.
_NEW_COLUMNS = (
    "execute_at, due_at, delivery_id, attempt, failures, attempts, last_error, updated_at"
)
_KEPT_COLUMNS = ", ".join(
    column for column in SHARED_COLUMNS.split(", ") if column not in _NEW_COLUMNS.split(", ")
)

_ARRAY_TYPES = (
    *("text", "text", "bigint", "integer", "bigint", "bigint", "smallint"),
    *("bigint", "bigint", "text", "integer", "integer", "text", "text", "bigint", "bigint"),
)


def _settle_statement(first: int, *, fenced: str, locks: str, is_held: str) -> str:
    """The statement that settles timers for which the condition `fenced` holds in the snapshot and
    `is_held` under the `locks`.

    Values from `first` on, arrays with an element for each timer: two for its key, three for its
    creation and the claim number and epoch that it executes under, the epoch that its shard must
    have, and then its new state.

    As in a claim, rows found in the snapshot are checked again under the locks of the fences, and
    deleted by ctid. A row of this table is never updated, so it is unchanged or gone. Inserts into
    `pending_timers` are in the order of the keys, as all locks of that table.
    """
    arrays = ", ".join(f"${first + n}::{each}[]" for n, each in enumerate(_ARRAY_TYPES))
    return f"""
    WITH found AS MATERIALIZED (
        SELECT DISTINCT ON (place)
               place, shard, epoch, status, {_NEW_COLUMNS}, executed_at, position
        FROM unnest({arrays}) WITH ORDINALITY AS batch (
            namespace, id, created_at, claim_number, epoch, shard_epoch, status, {_NEW_COLUMNS},
            executed_at, position)
        CROSS JOIN LATERAL (
            SELECT ctid AS place, shard FROM executing_timers AS timer
            WHERE timer.namespace = batch.namespace AND timer.id = batch.id
              AND timer.claim_number = batch.claim_number AND timer.epoch = batch.epoch
              AND timer.created_at = batch.created_at
            OFFSET 0
        ) AS executing
        WHERE {fenced}
        ORDER BY place, position
    ), {locks}, gone AS (
        DELETE FROM executing_timers AS timer
        USING (SELECT * FROM found WHERE {is_held} OFFSET 0) AS doomed
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


# Value $1: the role of the fences.
SETTLE = _settle_statement(
    2,
    fenced="""
        shard_epoch = (SELECT before.epoch FROM shard_fences AS before
                       WHERE before.role = $1 AND before.shard = executing.shard)""",
    locks="""
    fence AS MATERIALIZED (
        SELECT shard, epoch FROM shard_fences
        WHERE role = $1 AND shard = ANY (ARRAY(SELECT DISTINCT shard FROM found))
        ORDER BY shard FOR NO KEY UPDATE
    ), lost AS MATERIALIZED (
        SELECT shard FROM fence
        WHERE epoch <> (SELECT before.epoch FROM shard_fences AS before
                        WHERE before.role = $1 AND before.shard = fence.shard)
    )""",
    is_held="shard <> ALL (ARRAY(SELECT shard FROM lost))",
)

# For a former owner of the shards. The end of an unfinished lease deletes its row: that waits for
# this lock, and a row deleted before is not locked.
SETTLE_UNFINISHED = _settle_statement(
    1,
    fenced="""
        EXISTS (SELECT FROM unfinished_leases AS lease
                WHERE lease.shard = executing.shard AND lease.epoch = batch.epoch)""",
    locks="""
    fence AS MATERIALIZED (
        SELECT shard, epoch FROM unfinished_leases
        WHERE (shard, epoch) IN (SELECT shard, epoch FROM found)
        ORDER BY shard, epoch FOR NO KEY UPDATE
    )""",
    is_held="(shard, epoch) IN (SELECT shard, epoch FROM fence)",
)

# Every claim of the former owner is visible here: taking its shards waited for it. The client's
# content does not change and may be large, so it is not read.
#
# Values: $1 and $2 the leased shards and their epochs, $3 the limit, $4 the places to pass over.
LEFT_BEHIND = f"""
    WITH pile AS MATERIALIZED (
        SELECT leased.epoch AS shard_epoch, timer.*
        FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, epoch)
        CROSS JOIN LATERAL (
            SELECT ctid::text AS place,
                   created_at, updated_at, execute_at, due_at, epoch, command_order, shard,
                   attempt, failures, claim_number, timer_uuid, namespace, id, delivery_id,
                   '{{"type":"bus"}}' AS callback, NULL AS retry_policy, NULL AS metadata,
                   NULL AS correlation_id, NULL::bytea AS fingerprint, attempts, last_error,
                   1::smallint AS status, claimed_at, NULL::bigint AS executed_at,
                   octet_length(callback) AS bytes
            FROM executing_timers
            WHERE executing_timers.shard = leased.shard AND executing_timers.epoch < leased.epoch
              AND NOT EXISTS (SELECT FROM unfinished_leases AS lease
                              WHERE lease.shard = executing_timers.shard
                                AND lease.epoch = executing_timers.epoch)
              AND executing_timers.ctid <> ALL ($4::text[]::tid[])
            OFFSET 0
        ) AS timer
        LIMIT $3
    ), measured AS (
        SELECT *, sum(bytes) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
        FROM pile
    )
    SELECT shard_epoch, place, {TIMER_COLUMNS} FROM measured
    WHERE coalesce(bytes_before, 0) < {MAX_BATCH_BYTES}
"""


async def settle(
    connections: Connections, settlements: Sequence[Settlement], history_step: int
) -> list[bool]:
    """Apply each settlement whose timer executes under its claim number and epoch, if that is still
    the shard's epoch or that of an unfinished lease."""
    applied = await _apply(connections, SETTLE, [SETTLING_ROLE], settlements, history_step)
    if not all(applied):
        refused = [position for position, was_applied in enumerate(applied) if not was_applied]
        rest = [settlements[position] for position in refused]
        late = await _apply(connections, SETTLE_UNFINISHED, [], rest, history_step)
        for position, was_applied in zip(refused, late, strict=True):
            applied[position] = was_applied
    return applied


async def _apply(
    connections: Connections,
    statement: str,
    first_values: list[int],
    settlements: Sequence[Settlement],
    history_step: int,
    shard_epochs: Sequence[Epoch] | None = None,
) -> list[bool]:
    """The shards must have the epochs of the settlements, or `shard_epochs` if these are given."""
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
        lambda: connections.fetch_value(statement, *first_values, *values),
    )
    applied = [False] * len(settlements)
    for position in positions or ():
        applied[position - 1] = True
    return applied


def settlement_values(
    settlements: Sequence[Settlement], shard_epochs: Sequence[Epoch] | None = None
) -> list[list[Any]]:
    """The arrays of a settle statement."""
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


async def recover(
    connections: Connections, leases: Leases, limit: int, history_step: int
) -> list[Instant]:
    """Settle timers that are left behind as lost, under the new epochs.

    Because of the fences, only another recovery can have settled them meanwhile: no unfinished
    lease begins once the shard has a new owner. A timer that cannot be read is logged and left
    executing; the audit shows it.
    """
    readable = await _readable_left_behind(connections, leases, limit)
    settlements = [_settlement_as_lost(timer) for _, timer in readable]
    shard_epochs = [shard_epoch for shard_epoch, _ in readable]
    applied = await _apply(
        connections, SETTLE, [CLAIMING_ROLE], settlements, history_step, shard_epochs
    )
    return [
        settlement.due_at
        for settlement, was_applied in zip(settlements, applied, strict=True)
        if was_applied
    ]


async def _readable_left_behind(
    connections: Connections, leases: Leases, limit: int
) -> list[tuple[Epoch, Timer]]:
    """Timers left behind, with the epochs of their shards; none only if no readable one is left."""
    passed_over: list[str] = []
    while True:
        rows = await connections.fetch(
            LEFT_BEHIND, list(leases), list(leases.values()), limit, passed_over
        )
        readable = [
            (Epoch(shard_epoch), timer)
            for shard_epoch, _, *row in rows
            for timer in readable_timers([row])
        ]
        if readable or not rows:
            return readable
        passed_over += [place for _, place, *_ in rows]


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
