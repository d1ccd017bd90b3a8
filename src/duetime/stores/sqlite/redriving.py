"""Making failed timers pending again."""

from collections.abc import Sequence

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Redrive, redriven
from duetime.stores.sqlite.rows import SELECT_FINISHED, timer_of
from duetime.stores.sqlite.transaction import Transaction

# The positions of the redrives whose timers are failed, and these timers' row ids.
_FIND_FAILED = """
    SELECT batch.key, timers.row_id
    FROM json_each(?1) AS batch
    CROSS JOIN timers INDEXED BY timers_key
        ON timers.namespace = batch.value ->> 0 AND timers.id = batch.value ->> 1
    CROSS JOIN finished_timers AS finished
        ON finished.row_id = timers.row_id AND finished.status = 3
    ORDER BY batch.key
"""

_FETCH = f"{SELECT_FINISHED} WHERE timers.row_id IN (SELECT value FROM json_each(?1))"

_COPY_TO_LIVE = """
    INSERT INTO live_timers (
        row_id, namespace, shard, timer_uuid, created_at, updated_at, execute_at, due_at,
        claim_number, epoch, attempts, last_error)
    SELECT finished.row_id, finished.namespace, timers.shard, finished.timer_uuid,
           finished.created_at, ?2, finished.execute_at, max(?2, finished.execute_at),
           finished.claim_number, finished.epoch, finished.attempts, finished.last_error
    FROM json_each(?1) AS batch
    CROSS JOIN finished_timers AS finished ON finished.row_id = batch.value ->> 0
    CROSS JOIN timers ON timers.row_id = finished.row_id
"""

_DELETE_FINISHED = """
    DELETE FROM finished_timers WHERE row_id IN (SELECT value ->> 0 FROM json_each(?1))
"""

_RENAME_FIRING = """
    UPDATE timers SET delivery_id = batch.value ->> 1
    FROM json_each(?1) AS batch WHERE timers.row_id = batch.value ->> 0
"""

_encode = msgspec.json.Encoder().encode


def redrive_if_failed(
    transaction: Transaction, redrives: Sequence[Redrive], now: Instant
) -> list[Timer | None]:
    answers: list[Timer | None] = [None] * len(redrives)
    first_positions: dict[int, int] = {}
    keys = _encode([redrive.key for redrive in redrives]).decode()
    for position, row_id in transaction.execute(_FIND_FAILED, keys):
        first_positions.setdefault(row_id, position)
    if not first_positions:
        return answers
    for row in transaction.execute(_FETCH, str(list(first_positions))):
        position = first_positions[row[0]]
        timer = redriven(timer_of(row), redrives[position], now)
        answers[position] = timer
        transaction.moved(timer.key.namespace, TimerStatus.FAILED, TimerStatus.PENDING, 1)
    batch = _encode(
        [(row_id, redrives[position].delivery_id) for row_id, position in first_positions.items()]
    ).decode()
    transaction.execute(_COPY_TO_LIVE, batch, now)
    transaction.execute(_DELETE_FINISHED, batch)
    transaction.execute(_RENAME_FIRING, batch)
    return answers
