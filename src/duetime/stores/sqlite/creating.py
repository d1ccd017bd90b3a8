"""Creating timers in batches."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.rows import UPDATE_ASKED, asked_values, get_row, timer_of

LARGEST_INSERT = 64
"""Timers per statement: a usual group of single creates, and few enough that the statements of
all sizes stay prepared."""

_COLUMNS = (
    "namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at, delivery_id,"
    " callback, retry_policy, metadata, correlation_id, command_order, fingerprint"
)
_ROWS_PER_TIMER = 3

_LAST_ROW_ID = "SELECT coalesce(max(row_id), 0) FROM timers"

# A pending timer gives way to a new one of the same key; only created_at stays.
_REPLACE_STATE = """
    UPDATE live_timers
    SET updated_at = ?2, execute_at = ?3, due_at = ?4, attempt = 0, failures = 0, epoch = 0,
        attempts = NULL, last_error = NULL
    WHERE row_id = ?1
"""


def is_one_statement(requests: Sequence[CreateRequest]) -> bool:
    return len(requests) <= LARGEST_INSERT and all(
        request.on_existing is OnExisting.KEEP for request in requests
    )


def create_timers(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> list[CreateResult]:
    """Insert all timers; look for existing keys only when some were not inserted."""
    timers = [request.timer for request in requests]
    created = _insert_absent(transaction, timers)
    if created == len(timers):
        return [CreateResult(Existence.CREATED, timer) for timer in timers]
    (last_row_id,) = transaction.first(_LAST_ROW_ID)
    return _sort_out(transaction, requests, last_row_id - created)


def _insert_absent(transaction: Transaction, timers: Sequence[Timer]) -> int:
    """Insert and count the timers whose keys do not exist yet; returns how many."""
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
def _insert_statement(rows: int) -> str:
    row = f"({', '.join('?' * (_COLUMNS.count(',') + 1))})"
    return f"INSERT INTO new_timers ({_COLUMNS}) VALUES {', '.join([row] * rows)}"


def _sort_out(
    transaction: Transaction, requests: Sequence[CreateRequest], last_old_row_id: int
) -> list[CreateResult]:
    """The result of each request when some keys existed before, or occur twice in the batch.

    The first request for a key that has a new row created it; every other one met a timer.
    """
    results = []
    new_row_ids: set[int] = set()
    for request in requests:
        row = get_row(transaction, request.timer.key)
        assert row is not None
        row_id = row[0]
        if row_id > last_old_row_id and row_id not in new_row_ids:
            new_row_ids.add(row_id)
            results.append(CreateResult(Existence.CREATED, request.timer))
        else:
            results.append(_meet(transaction, request, row_id, timer_of(row)))
    return results


def _meet(
    transaction: Transaction, request: CreateRequest, row_id: int, existing: Timer
) -> CreateResult:
    if request.on_existing is OnExisting.KEEP or existing.status is not TimerStatus.PENDING:
        return CreateResult(Existence.EXISTING, existing)
    timer = request.timer
    transaction.execute(UPDATE_ASKED, row_id, *asked_values(timer))
    transaction.execute(_REPLACE_STATE, row_id, timer.updated_at, timer.execute_at, timer.due_at)
    return CreateResult(Existence.REPLACED, replaced(existing, timer))
