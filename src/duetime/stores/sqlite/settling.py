"""Settling attempts in batches."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.timer_rows import attempts_text

# The settlements of a batch that apply. A settlement applies while the timer, still the same one,
# is executing under its claim number and epoch, and the epoch is still the shard's.
_APPLICABLE = """
    json_each(?1) AS batch
    CROSS JOIN timers INDEXED BY timers_key
        ON timers.namespace = batch.value ->> 0 AND timers.id = batch.value ->> 1
    CROSS JOIN live_timers AS live ON live.row_id = timers.row_id
    WHERE live.status = 1
      AND live.created_at = batch.value ->> 4
      AND live.claim_number = batch.value ->> 2
      AND live.epoch = batch.value ->> 3
      AND live.epoch = (SELECT epoch FROM shards WHERE shards.shard = live.shard)
"""

_FIND_APPLICABLE = f"SELECT json_group_array(json_array(batch.key, live.row_id)) FROM {_APPLICABLE}"

_COPY_TO_FINISHED = f"""
    INSERT INTO finished_timers (
        row_id, namespace, timer_uuid, created_at, execute_at, due_at, attempt, claim_number,
        epoch, status, updated_at, failures, last_error, executed_at, attempts)
    SELECT live.row_id, live.namespace, live.timer_uuid, live.created_at, live.execute_at,
           live.due_at, live.attempt, live.claim_number, live.epoch, batch.value ->> 5,
           batch.value ->> 6, batch.value ->> 7, batch.value ->> 8, batch.value ->> 9,
           batch.value ->> 10
    FROM {_APPLICABLE}
"""

_LAST_FINISHED = "SELECT coalesce(max(finish_number), 0) FROM finished_timers"

_DELETE_FINISHED = """
    DELETE FROM live_timers
    WHERE row_id IN (SELECT row_id FROM finished_timers WHERE finish_number > ?1)
"""

_BACK_TO_PENDING = """
    UPDATE live_timers
    SET status = 0, claimed_at = NULL, execute_at = batch.value ->> 1, due_at = batch.value ->> 2,
        attempt = batch.value ->> 3, failures = batch.value ->> 4, last_error = batch.value ->> 5,
        updated_at = batch.value ->> 6, attempts = batch.value ->> 8
    FROM json_each(?1) AS batch
    WHERE live_timers.row_id = batch.value ->> 0
"""

# A reschedule is a new firing and has a new delivery id; otherwise the row is left alone.
_RENAME_FIRING = """
    UPDATE timers SET delivery_id = batch.value ->> 7
    FROM json_each(?1) AS batch
    WHERE timers.row_id = batch.value ->> 0 AND timers.delivery_id <> batch.value ->> 7
"""

_encode = msgspec.json.Encoder().encode
_decode_applicable = msgspec.json.Decoder(list[tuple[int, int]]).decode

_Guard = tuple[str, str, int, int, int]


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[bool]:
    first_positions: dict[_Guard, int] = {}
    for position, each in enumerate(settlements):
        guard = (each.namespace, each.id, each.claim_number, each.epoch, each.created_at)
        first_positions.setdefault(guard, position)
    finishing: list[tuple[_Guard, int]] = []
    returning: list[tuple[_Guard, int]] = []
    for guarded in first_positions.items():
        is_pending = settlements[guarded[1]].status is TimerStatus.PENDING
        (returning if is_pending else finishing).append(guarded)
    applied = [False] * len(settlements)
    for position in _finish(transaction, settlements, finishing):
        applied[position] = True
    for position in _return(transaction, settlements, returning):
        applied[position] = True
    moves = Counter(
        (each.namespace, each.status)
        for each, is_applied in zip(settlements, applied, strict=True)
        if is_applied
    )
    for (namespace, status), timers in moves.items():
        transaction.moved(namespace, TimerStatus.EXECUTING, status, timers)
    return applied


def _finish(
    transaction: Transaction,
    settlements: Sequence[Settlement],
    finishing: Sequence[tuple[_Guard, int]],
) -> Sequence[int]:
    """Move timers to `finished_timers`; the positions of the settlements that applied."""
    if not finishing:
        return ()
    batch = _encode(
        [(*guard, *_finished_values(settlements[position])) for guard, position in finishing]
    ).decode()
    positions = [position for _, position in finishing]
    (last_finished,) = transaction.first(_LAST_FINISHED)
    changes_before = transaction.total_changes
    transaction.execute(_COPY_TO_FINISHED, batch)
    if transaction.total_changes - changes_before < len(finishing):
        found = _decode_applicable(transaction.first(_FIND_APPLICABLE, batch)[0])
        positions = [positions[key] for key, _ in found]
    transaction.execute(_DELETE_FINISHED, last_finished)
    return positions


def _return(
    transaction: Transaction,
    settlements: Sequence[Settlement],
    returning: Sequence[tuple[_Guard, int]],
) -> Sequence[int]:
    """Make timers pending again; the positions of the settlements that applied."""
    if not returning:
        return ()
    guards = _encode([guard for guard, _ in returning]).decode()
    found = _decode_applicable(transaction.first(_FIND_APPLICABLE, guards)[0])
    applicable = [(returning[key][1], row_id) for key, row_id in found]
    batch = _encode(
        [(row_id, *_pending_values(settlements[position])) for position, row_id in applicable]
    ).decode()
    transaction.execute(_BACK_TO_PENDING, batch)
    transaction.execute(_RENAME_FIRING, batch)
    return [position for position, _ in applicable]


def _finished_values(settlement: Settlement) -> tuple[object, ...]:
    return (
        settlement.status,
        settlement.updated_at,
        settlement.failures,
        settlement.last_error,
        settlement.executed_at,
        attempts_text(settlement.attempts),
    )


def _pending_values(settlement: Settlement) -> tuple[object, ...]:
    return (
        settlement.execute_at,
        settlement.due_at,
        settlement.attempt,
        settlement.failures,
        settlement.last_error,
        settlement.updated_at,
        settlement.delivery_id,
        attempts_text(settlement.attempts),
    )
