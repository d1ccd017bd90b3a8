"""Writing the rows of new timers, with what finds them."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from duetime.domain.timer import Timer
from duetime.stores.sqlite.rows import asked_values
from duetime.stores.sqlite.transaction import Transaction

LAST_ROW_ID = "SELECT coalesce(max(row_id), 0) FROM timers"

_COLUMNS = (
    "namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at, delivery_id,"
    " callback, retry_policy, metadata, correlation_id, fingerprint"
)
_ROW = f"({', '.join('?' * (_COLUMNS.count(',') + 1))})"

_ROWS_PER_TIMER = 3
LARGEST_INSERT = 64
"""Timers per statement: as many as are usual at once, and few enough that the statements of
all sizes stay prepared."""


def insert_absent(transaction: Transaction, timers: Sequence[Timer]) -> int:
    """Insert the timers whose keys are not there yet; how many that were."""
    changes_before = transaction.total_changes
    for start in range(0, len(timers), LARGEST_INSERT):
        chunk = timers[start : start + LARGEST_INSERT]
        values: list[Any] = []
        for timer in chunk:
            values += timer.key
            values += (timer.shard, timer.timer_uuid, timer.created_at, timer.updated_at)
            values += (timer.execute_at, timer.due_at)
            values += asked_values(timer)
        transaction.execute(_insert_statement(len(chunk)), *values)
    return (transaction.total_changes - changes_before) // _ROWS_PER_TIMER


@cache
def _insert_statement(timers: int) -> str:
    return f"INSERT INTO new_timers ({_COLUMNS}) VALUES {', '.join([_ROW] * timers)}"
