"""Creating timers in batches."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.sqlite.reading import get_row
from duetime.stores.sqlite.rows import asked_values, timer_of
from duetime.stores.sqlite.transaction import Transaction

# Which of the given keys exist, by their position in the batch.
_FIND_EXISTING = """
    SELECT json_group_array(batch.key) FROM json_each(?) AS batch
    WHERE EXISTS (SELECT 1 FROM timers
                  WHERE namespace = batch.value ->> 0 AND id = batch.value ->> 1)
"""

_LAST_ROW_ID = "SELECT coalesce(max(row_id), 0) FROM timers"

_TIMER_COLUMNS = (
    "row_id, namespace, id, shard, timer_uuid, created_at, delivery_id, callback, retry_policy,"
    " metadata, correlation_id, fingerprint"
)
_LIVE_COLUMNS = "row_id, namespace, shard, timer_uuid, created_at, updated_at, execute_at, due_at"

# A pending timer gives way to a new one of the same key; only created_at stays.
_REPLACE_ASKED = """
    UPDATE timers
    SET delivery_id = ?2, callback = ?3, retry_policy = ?4, metadata = ?5, correlation_id = ?6,
        fingerprint = ?7
    WHERE row_id = ?1
"""
_REPLACE_STATE = """
    UPDATE live_timers
    SET updated_at = ?2, execute_at = ?3, due_at = ?4, attempt = 0, failures = 0, epoch = 0,
        attempts = NULL, last_error = NULL
    WHERE row_id = ?1
"""

_LARGEST_INSERT = 64
"""Rows per statement. Sizes are powers of two, so that a handful of prepared ones serve all."""

_encode = msgspec.json.Encoder().encode
_decode_positions = msgspec.json.Decoder(list[int]).decode


def create_timers(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> list[CreateResult]:
    results: list[CreateResult | None] = [None] * len(requests)
    one_by_one = _positions_that_may_exist(transaction, requests)
    new = [request.timer for position, request in enumerate(requests) if position not in one_by_one]
    _insert(transaction, new)
    for position, request in enumerate(requests):
        if position in one_by_one:
            results[position] = _create_one(transaction, request)
        else:
            results[position] = CreateResult(Existence.CREATED, request.timer)
    return [result for result in results if result is not None]


def _positions_that_may_exist(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> set[int]:
    """Positions whose key exists already or stands earlier in the same batch."""
    keys = [request.timer.key for request in requests]
    (found,) = transaction.first(_FIND_EXISTING, _encode(keys).decode())
    positions = set(_decode_positions(found))
    if len(set(keys)) < len(keys):
        seen: set[TimerKey] = set()
        for position, key in enumerate(keys):
            if key in seen:
                positions.add(position)
            seen.add(key)
    return positions


def _insert(transaction: Transaction, timers: Sequence[Timer]) -> None:
    (row_id,) = transaction.first(_LAST_ROW_ID)
    start = 0
    while start < len(timers):
        size = min(_LARGEST_INSERT, 1 << ((len(timers) - start).bit_length() - 1))
        asked: list[Any] = []
        state: list[Any] = []
        for timer in timers[start : start + size]:
            row_id += 1
            (namespace, id), shard, timer_uuid = timer.key, timer.shard, timer.timer_uuid
            created_at = timer.created_at
            asked += (row_id, namespace, id, shard, timer_uuid, created_at, *asked_values(timer))
            state += (row_id, namespace, shard, timer_uuid, created_at)
            state += (timer.updated_at, timer.execute_at, timer.due_at)
        transaction.execute(_insert_statement("timers", _TIMER_COLUMNS, size), *asked)
        transaction.execute(_insert_statement("live_timers", _LIVE_COLUMNS, size), *state)
        start += size
    for namespace, created in Counter([timer.key.namespace for timer in timers]).items():
        transaction.count(namespace, TimerStatus.PENDING, created)


@cache
def _insert_statement(table: str, columns: str, rows: int) -> str:
    row = f"({', '.join('?' * (columns.count(',') + 1))})"
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)}"


def _create_one(transaction: Transaction, request: CreateRequest) -> CreateResult:
    timer = request.timer
    row = get_row(transaction, timer.key)
    if row is None:
        _insert(transaction, [timer])
        return CreateResult(Existence.CREATED, timer)
    existing = timer_of(row)
    if request.on_existing is OnExisting.KEEP or existing.status is not TimerStatus.PENDING:
        return CreateResult(Existence.EXISTING, existing)
    row_id = row[0]
    transaction.execute(_REPLACE_ASKED, row_id, *asked_values(timer))
    transaction.execute(_REPLACE_STATE, row_id, timer.updated_at, timer.execute_at, timer.due_at)
    return CreateResult(Existence.REPLACED, replaced(existing, timer))
