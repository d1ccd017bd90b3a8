"""Creating timers in batches."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.sqlite.connections import Statements, Transaction
from duetime.stores.sqlite.tables import UPDATE_ASKED, Row, asked_values, find_row, find_rows
from duetime.stores.timer_rows import existing_timer_of, key_of

LARGEST_INSERT = 64
"""Timers per statement: a usual group of single creates, and few enough that the statements of
all sizes stay prepared."""

_TIMER = (
    "namespace, id, shard, timer_uuid, created_at, delivery_id, callback, retry_policy, metadata,"
    " correlation_id, command_order, fingerprint"
)
_INSTANTS = "updated_at, execute_at, due_at"

_NEW_TIMERS = f"new_timers ({_TIMER}, {_INSTANTS})"
_TIMERS = f"timers (row_id, {_TIMER})"
_STATES = f"live_timers (row_id, namespace, shard, timer_uuid, created_at, {_INSTANTS})"

_ROWS_PER_NEW_TIMER = 3

_EXISTS = "SELECT 1 FROM timers WHERE namespace = ? AND id = ?"
_LAST_ROW_ID = "SELECT coalesce(max(row_id), 0) FROM timers"
_NEW_KEYS = "SELECT json_group_array(json_array(namespace, id)) FROM timers WHERE row_id > ?1"
_NEW_ROW_IDS = "SELECT json_group_array(row_id) FROM timers WHERE row_id > ?1"

# A pending timer gives way to a new one of the same key; only created_at stays.
_REPLACE_STATE = """
    UPDATE live_timers
    SET updated_at = ?2, execute_at = ?3, due_at = ?4, attempt = 0, failures = 0, epoch = 0,
        attempts = NULL, last_error = NULL
    WHERE row_id = ?1
"""

_decode_keys = msgspec.json.Decoder(list[TimerKey]).decode
_decode_row_ids = msgspec.json.Decoder(set[int]).decode


class NewTimer(Struct, frozen=True, gc=False):
    """A request, with the values of the timer's two rows but for the row id."""

    request: CreateRequest
    timer_values: Row
    state_values: Row

    @classmethod
    def of(cls, request: CreateRequest) -> "NewTimer":
        """Made in the caller's thread, because the writer's time is scarce."""
        timer = request.timer
        namespace, id = timer.key
        fixed = (timer.shard, timer.timer_uuid, timer.created_at)
        instants = (timer.updated_at, timer.execute_at, timer.due_at)
        return cls(
            request, (namespace, id, *fixed, *asked_values(timer)), (namespace, *fixed, *instants)
        )


def all_exist(statements: Statements, requests: Sequence[CreateRequest]) -> bool:
    """Whether all timers exist and are to be left alone, so that nothing has to be written."""
    return all(
        not request.id_is_new
        and request.on_existing is OnExisting.KEEP
        and statements.first(_EXISTS, *request.timer.key) is not None
        for request in requests
    )


def is_one_statement(new: Sequence[NewTimer]) -> bool:
    return len(new) <= LARGEST_INSERT and all(
        each.request.on_existing is OnExisting.KEEP for each in new
    )


def create_timers(transaction: Transaction, new: Sequence[NewTimer]) -> list[CreateResult | None]:
    """Insert all timers; look for existing keys only when some were not inserted.

    None stands for a timer that exists and is kept. `read_existing` finds it outside of the writer,
    whose time is scarce: claims wait for it.
    """
    if not new:
        return []
    if len(new) > LARGEST_INSERT:
        created, last_row_id = _insert_many(transaction, new)
    else:
        created, last_row_id = _insert_few(transaction, new), None
    if created == len(new):
        return [CreateResult(Existence.CREATED, each.request.timer) for each in new]
    if last_row_id is None:
        last_row_id = transaction.first(_LAST_ROW_ID)[0] - created
    return _sort_out(transaction, [each.request for each in new], last_row_id)


def read_existing(
    statements: Statements, requests: Sequence[CreateRequest]
) -> list[CreateResult | None]:
    """The result of each request that met an existing timer; None where that is gone by now."""
    rows = find_rows(statements, [request.timer.key for request in requests])
    existing = {key_of(row[1:]): existing_timer_of(row[1:]) for row in rows}
    return [
        None if (found := existing.get(request.timer.key)) is None else _kept(request, *found)
        for request in requests
    ]


def _insert_few(transaction: Transaction, new: Sequence[NewTimer]) -> int:
    values: list[Any] = []
    for each in new:
        values += each.timer_values
        values += each.state_values[-3:]
    changes_before = transaction.total_changes
    transaction.execute(_insert_statement(_NEW_TIMERS, len(new)), *values)
    return (transaction.total_changes - changes_before) // _ROWS_PER_NEW_TIMER


def _insert_many(transaction: Transaction, new: Sequence[NewTimer]) -> tuple[int, int]:
    """Insert in the order of the indexes, where neighbours share pages, and without the trigger,
    which would take a sixth of the time. Returns the number of new timers, and the last row id
    before them."""
    (last_row_id,) = transaction.first(_LAST_ROW_ID)
    numbered = list(enumerate(sorted(new, key=_sort_key), last_row_id + 1))
    changes_before = transaction.total_changes
    _insert(transaction, _TIMERS, [(row_id, each.timer_values) for row_id, each in numbered])
    created = transaction.total_changes - changes_before
    if created < len(new):
        new_row_ids = _decode_row_ids(transaction.first(_NEW_ROW_IDS, last_row_id)[0])
        numbered = [each for each in numbered if each[0] in new_row_ids]
    numbered.sort(key=lambda each: each[1].state_values[-1])
    _insert(transaction, _STATES, [(row_id, each.state_values) for row_id, each in numbered])
    for namespace, timers in Counter([each.state_values[0] for _, each in numbered]).items():
        transaction.count(namespace, TimerStatus.PENDING, timers)
    return created, last_row_id


def _sort_key(new: NewTimer) -> str:
    """Sorts like the key, and faster than a tuple."""
    namespace, id, *_ = new.timer_values
    return f"{namespace}\0{id}"


def _insert(transaction: Transaction, table: str, rows: Sequence[tuple[int, Row]]) -> None:
    for start in range(0, len(rows), LARGEST_INSERT):
        chunk = rows[start : start + LARGEST_INSERT]
        values: list[Any] = []
        for row_id, row in chunk:
            values.append(row_id)
            values += row
        transaction.execute(_insert_statement(table, len(chunk)), *values)


@cache
def _insert_statement(table: str, rows: int) -> str:
    row = f"({', '.join('?' * (table.count(',') + 1))})"
    # The view's trigger handles existing keys.
    otherwise = "" if table is _NEW_TIMERS else " ON CONFLICT DO NOTHING"
    return f"INSERT INTO {table} VALUES {', '.join([row] * rows)}{otherwise}"


def _sort_out(
    transaction: Transaction, requests: Sequence[CreateRequest], last_old_row_id: int
) -> list[CreateResult | None]:
    """The result of each request when some keys existed before, or occur twice in the batch.

    The first request for a key that has a new row created it; every other one met a timer.
    """
    new_keys = set(_decode_keys(transaction.first(_NEW_KEYS, last_old_row_id)[0]))
    times = Counter([request.timer.key for request in requests])
    results: list[CreateResult | None] = []
    for request in requests:
        key = request.timer.key
        if key in new_keys:
            new_keys.remove(key)
            results.append(CreateResult(Existence.CREATED, request.timer))
        elif request.on_existing is OnExisting.KEEP and times[key] == 1:
            results.append(None)
        else:
            # Another request of the batch may change the timer after this one has met it.
            results.append(_meet(transaction, request))
    return results


def _meet(transaction: Transaction, request: CreateRequest) -> CreateResult:
    """The existing timer as it is now, or replaced."""
    timer = request.timer
    found = find_row(transaction, timer.key)
    assert found is not None
    row_id, *row = found
    existing, is_readable = existing_timer_of(row)
    if request.on_existing is OnExisting.KEEP or existing.status is not TimerStatus.PENDING:
        return _kept(request, existing, is_readable)
    transaction.execute(UPDATE_ASKED, row_id, *asked_values(timer))
    transaction.execute(_REPLACE_STATE, row_id, timer.updated_at, timer.execute_at, timer.due_at)
    return CreateResult(Existence.REPLACED, replaced(existing, timer))


def _kept(request: CreateRequest, existing: Timer, is_readable: bool) -> CreateResult:
    if is_readable:
        return CreateResult(Existence.EXISTING, existing)
    return CreateResult(Existence.UNREADABLE, request.timer)
