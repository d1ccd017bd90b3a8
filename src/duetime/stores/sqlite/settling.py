"""Settling attempts in batches."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Settlement
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.rows import attempts_text

# Which settlements of the batch apply: pairs of position and row id. A settlement applies while
# the timer, still the same one, is executing under its claim number and epoch, and the epoch is
# still the shard's.
_FIND_APPLICABLE = """
    SELECT json_group_array(json_array(batch.key, live.row_id))
    FROM json_each(?1) AS batch
    CROSS JOIN timers INDEXED BY timers_key
        ON timers.namespace = batch.value ->> 0 AND timers.id = batch.value ->> 1
    CROSS JOIN live_timers AS live ON live.row_id = timers.row_id
    WHERE live.status = 1
      AND live.created_at = batch.value ->> 4
      AND live.claim_number = batch.value ->> 2
      AND live.epoch = batch.value ->> 3
      AND live.epoch = (SELECT epoch FROM shards WHERE shards.shard = live.shard)
"""

_COPY_TO_FINISHED = """
    INSERT INTO finished_timers (
        row_id, namespace, timer_uuid, created_at, execute_at, due_at, attempt, claim_number,
        epoch, status, updated_at, failures, attempts, last_error, executed_at)
    SELECT live.row_id, live.namespace, live.timer_uuid, live.created_at, live.execute_at,
           live.due_at, live.attempt, live.claim_number, live.epoch, batch.value ->> 1,
           batch.value ->> 2, batch.value ->> 3, batch.value ->> 4, batch.value ->> 5,
           batch.value ->> 6
    FROM json_each(?1) AS batch
    CROSS JOIN live_timers AS live ON live.row_id = batch.value ->> 0
"""

_DELETE_FINISHED = """
    DELETE FROM live_timers WHERE row_id IN (SELECT value ->> 0 FROM json_each(?1))
"""

_BACK_TO_PENDING = """
    UPDATE live_timers
    SET status = 0, claimed_at = NULL, execute_at = batch.value ->> 1, due_at = batch.value ->> 2,
        attempt = batch.value ->> 3, failures = batch.value ->> 4, attempts = batch.value ->> 5,
        last_error = batch.value ->> 6, updated_at = batch.value ->> 7
    FROM json_each(?1) AS batch
    WHERE live_timers.row_id = batch.value ->> 0
"""

# A reschedule is a new firing and has a new delivery id; otherwise it stays, and so does the row.
_RENAME_FIRING = """
    UPDATE timers SET delivery_id = batch.value ->> 8
    FROM json_each(?1) AS batch
    WHERE timers.row_id = batch.value ->> 0 AND timers.delivery_id <> batch.value ->> 8
"""

_encode = msgspec.json.Encoder().encode
_decode_applicable = msgspec.json.Decoder(list[tuple[int, int]]).decode


def settle(transaction: Transaction, settlements: Sequence[Settlement]) -> list[bool]:
    guards = [(s.namespace, s.id, s.claim_number, s.epoch, s.created_at) for s in settlements]
    (found,) = transaction.first(_FIND_APPLICABLE, _encode(guards).decode())
    applied = [False] * len(settlements)
    finished: list[tuple[object, ...]] = []
    pending: list[tuple[object, ...]] = []
    moves: Counter[tuple[str, TimerStatus]] = Counter()
    settled_rows: set[int] = set()
    for position, row_id in _decode_applicable(found):
        if row_id in settled_rows:
            continue
        settled_rows.add(row_id)
        applied[position] = True
        settlement = settlements[position]
        moves[settlement.namespace, settlement.status] += 1
        if settlement.status is TimerStatus.PENDING:
            pending.append(_pending_values(row_id, settlement))
        else:
            finished.append(_finished_values(row_id, settlement))
    if finished:
        batch = _encode(finished).decode()
        transaction.execute(_COPY_TO_FINISHED, batch)
        transaction.execute(_DELETE_FINISHED, batch)
    if pending:
        batch = _encode(pending).decode()
        transaction.execute(_BACK_TO_PENDING, batch)
        transaction.execute(_RENAME_FIRING, batch)
    for (namespace, status), timers in moves.items():
        transaction.moved(namespace, TimerStatus.EXECUTING, status, timers)
    return applied


def _finished_values(row_id: int, settlement: Settlement) -> tuple[object, ...]:
    return (
        row_id,
        settlement.status,
        settlement.updated_at,
        settlement.failures,
        attempts_text(settlement.attempts),
        settlement.last_error,
        settlement.executed_at,
    )


def _pending_values(row_id: int, settlement: Settlement) -> tuple[object, ...]:
    return (
        row_id,
        settlement.execute_at,
        settlement.due_at,
        settlement.attempt,
        settlement.failures,
        attempts_text(settlement.attempts),
        settlement.last_error,
        settlement.updated_at,
        settlement.delivery_id,
    )
