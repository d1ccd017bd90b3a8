"""Creating timers in batches."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

import msgspec

from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.tables import UPDATE_ASKED, Row, asked_values, find_timer

LARGEST_INSERT = 64
"""Timers per statement: a usual group of single creates, and few enough that the statements of
all sizes stay prepared."""

_ASKED = "delivery_id, callback, retry_policy, metadata, correlation_id, command_order, fingerprint"
_NEW_TIMER = (
    f"namespace, id, shard, timer_uuid, created_at, updated_at, execute_at, due_at, {_ASKED}"
)
_TIMER = f"row_id, namespace, id, shard, timer_uuid, created_at, {_ASKED}"
_STATE = "row_id, namespace, shard, timer_uuid, created_at, updated_at, execute_at, due_at"
_ROWS_PER_NEW_TIMER = 3

_LAST_ROW_ID = "SELECT coalesce(max(row_id), 0) FROM timers"

_NEW_ROW_IDS = "SELECT json_group_array(row_id) FROM timers WHERE row_id > ?1"

# A pending timer gives way to a new one of the same key; only created_at stays.
_REPLACE_STATE = """
    UPDATE live_timers
    SET updated_at = ?2, execute_at = ?3, due_at = ?4, attempt = 0, failures = 0, epoch = 0,
        attempts = NULL, last_error = NULL
    WHERE row_id = ?1
"""


_decode_row_ids = msgspec.json.Decoder(set[int]).decode


def is_one_statement(requests: Sequence[CreateRequest]) -> bool:
    return len(requests) <= LARGEST_INSERT and all(
        request.on_existing is OnExisting.KEEP for request in requests
    )


def create_timers(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> list[CreateResult]:
    """Insert all timers; look for existing keys only when some were not inserted."""
    if len(requests) > LARGEST_INSERT:
        return _create_many(transaction, requests)
    rows = (
        (*_key_values(timer), *_instants(timer), *asked_values(timer))
        for timer in _timers_of(requests)
    )
    created = _insert(transaction, "new_timers", _NEW_TIMER, rows) // _ROWS_PER_NEW_TIMER
    if created == len(requests):
        return _all_created(requests)
    (last_row_id,) = transaction.first(_LAST_ROW_ID)
    return _sort_out(transaction, requests, last_row_id - created)


def _create_many(transaction: Transaction, requests: Sequence[CreateRequest]) -> list[CreateResult]:
    """Insert in the order of the indexes, where neighbours share pages, and without the trigger,
    which would take a sixth of the time."""
    (last_row_id,) = transaction.first(_LAST_ROW_ID)
    by_key = sorted(_timers_of(requests), key=lambda timer: timer.key)
    numbered = list(enumerate(by_key, last_row_id + 1))
    rows = ((row_id, *_key_values(timer), *asked_values(timer)) for row_id, timer in numbered)
    created = _insert(transaction, "timers", _TIMER, rows)
    if created < len(requests):
        new_row_ids = _decode_row_ids(transaction.first(_NEW_ROW_IDS, last_row_id)[0])
        numbered = [each for each in numbered if each[0] in new_row_ids]
    numbered.sort(key=lambda each: each[1].due_at)
    rows = ((row_id, *_state_values(timer)) for row_id, timer in numbered)
    _insert(transaction, "live_timers", _STATE, rows)
    for namespace, timers in Counter(timer.key.namespace for _, timer in numbered).items():
        transaction.count(namespace, TimerStatus.PENDING, timers)
    if created == len(requests):
        return _all_created(requests)
    return _sort_out(transaction, requests, last_row_id)


def _timers_of(requests: Sequence[CreateRequest]) -> list[Timer]:
    return [request.timer for request in requests]


def _key_values(timer: Timer) -> Row:
    return (*timer.key, timer.shard, timer.timer_uuid, timer.created_at)


def _instants(timer: Timer) -> Row:
    return (timer.updated_at, timer.execute_at, timer.due_at)


def _state_values(timer: Timer) -> Row:
    key_values = (timer.key.namespace, timer.shard, timer.timer_uuid, timer.created_at)
    return (*key_values, *_instants(timer))


def _insert(transaction: Transaction, table: str, columns: str, rows: Iterable[Row]) -> int:
    """Insert the rows whose keys do not exist yet; returns how many rows that wrote."""
    changes_before = transaction.total_changes
    waiting = list(rows)
    for start in range(0, len(waiting), LARGEST_INSERT):
        chunk = waiting[start : start + LARGEST_INSERT]
        statement = _insert_statement(table, columns, len(chunk))
        transaction.execute(statement, *chain.from_iterable(chunk))
    return transaction.total_changes - changes_before


@cache
def _insert_statement(table: str, columns: str, rows: int) -> str:
    row = f"({', '.join('?' * (columns.count(',') + 1))})"
    # The trigger of the view says for itself what to do about a key that exists.
    otherwise = "" if table == "new_timers" else " ON CONFLICT DO NOTHING"
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)}{otherwise}"


def _all_created(requests: Sequence[CreateRequest]) -> list[CreateResult]:
    return [CreateResult(Existence.CREATED, request.timer) for request in requests]


def _sort_out(
    transaction: Transaction, requests: Sequence[CreateRequest], last_old_row_id: int
) -> list[CreateResult]:
    """The result of each request when some keys existed before, or occur twice in the batch.

    The first request for a key that has a new row created it; every other one met a timer.
    """
    results = []
    new_row_ids: set[int] = set()
    for request in requests:
        found = find_timer(transaction, request.timer.key)
        assert found is not None
        row_id, existing = found
        if row_id > last_old_row_id and row_id not in new_row_ids:
            new_row_ids.add(row_id)
            results.append(CreateResult(Existence.CREATED, request.timer))
        else:
            results.append(_meet(transaction, request, row_id, existing))
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
