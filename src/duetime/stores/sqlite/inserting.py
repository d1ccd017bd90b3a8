"""Writing the rows of timers, with what finds them."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from duetime.domain.timer import Timer
from duetime.stores.sqlite.blocks import UnfiledTimer
from duetime.stores.sqlite.rows import asked_values
from duetime.stores.sqlite.transaction import Transaction

LAST_ROW_ID = "SELECT coalesce(max(row_id), 0) FROM timers"

_COLUMNS = (
    "namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at, delivery_id,"
    " callback, retry_policy, metadata, correlation_id, fingerprint"
)
_ROWS_PER_TIMER = 3
LARGEST_INSERT = 64
"""Timers per statement: as many as are usual at once, and few enough that the statements of
all sizes stay prepared."""

_TIMER_COLUMNS = (
    "row_id, namespace, id, shard, timer_uuid, created_at, delivery_id, callback, retry_policy,"
    " metadata, correlation_id, fingerprint"
)

# The states of timers whose rows follow each other, from a row on. Most of it is read from the
# rows just written: that costs the interpreter nothing.
_INSERT_STATES = """
    INSERT INTO live_timers (row_id, namespace, shard, timer_uuid, created_at, updated_at,
                             execute_at, due_at)
    SELECT timers.row_id, timers.namespace, timers.shard, timers.timer_uuid, timers.created_at,
           timers.created_at, instants.value, instants.value
    FROM json_each(?1) AS instants
    CROSS JOIN timers ON timers.row_id = ?2 + instants.key
"""

_encode = msgspec.json.Encoder().encode


def insert_absent(transaction: Transaction, timers: Sequence[Timer]) -> int:
    """Insert and count the timers whose keys are not there yet; how many that were."""
    changes_before = transaction.total_changes
    for start in range(0, len(timers), LARGEST_INSERT):
        chunk = timers[start : start + LARGEST_INSERT]
        values: list[Any] = []
        for timer in chunk:
            values += timer.key
            values += (timer.shard, timer.timer_uuid, timer.created_at, timer.updated_at)
            values += (timer.execute_at, timer.due_at)
            values += asked_values(timer)
        transaction.execute(_insert_statement("new_timers", _COLUMNS, len(chunk)), *values)
    return (transaction.total_changes - changes_before) // _ROWS_PER_TIMER


def insert_unfiled(transaction: Transaction, timers: Sequence[UnfiledTimer]) -> None:
    """Insert timers that are counted already and whose keys are known not to be there."""
    (last_row,) = transaction.first(LAST_ROW_ID)
    for start in range(0, len(timers), LARGEST_INSERT):
        chunk = timers[start : start + LARGEST_INSERT]
        values: list[Any] = []
        for row_id, timer in enumerate(chunk, last_row + 1 + start):
            values.append(row_id)
            values += timer.asked
        transaction.execute(_insert_statement("timers", _TIMER_COLUMNS, len(chunk)), *values)
    instants = _encode([timer.execute_at for timer in timers]).decode()
    transaction.execute(_INSERT_STATES, instants, last_row + 1)


@cache
def _insert_statement(table: str, columns: str, rows: int) -> str:
    row = f"({', '.join('?' * (columns.count(',') + 1))})"
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)}"
