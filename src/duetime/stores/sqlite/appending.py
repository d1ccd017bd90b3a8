"""Creating the many timers of a large batch: only appended, to be filed later."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite.filing import add_keys, any_unfiled, file_slice, note_appended
from duetime.stores.sqlite.inserting import LAST_ROW_ID, insert_absent
from duetime.stores.sqlite.rows import asked_values
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions

_COLUMNS = (
    "row_id, namespace, id, shard, timer_uuid, created_at, delivery_id, callback, retry_policy,"
    " metadata, correlation_id, fingerprint"
)
_LARGEST_APPEND = 256
"""Timers per statement. A longer statement would be too long to stay prepared."""

# The states of new timers that go into one after the other, from a row on. Most of it is read
# from the rows just written: that costs the interpreter nothing.
_APPEND_STATES = """
    INSERT INTO live_timers (row_id, namespace, shard, timer_uuid, created_at, updated_at,
                             execute_at, due_at, filed)
    SELECT timers.row_id, timers.namespace, timers.shard, timers.timer_uuid, timers.created_at,
           timers.created_at, instants.value, instants.value, 0
    FROM json_each(?1) AS instants
    CROSS JOIN timers ON timers.row_id = ?2 + instants.key
"""

_ANY_FILED = """
    SELECT EXISTS (
        SELECT 1 FROM json_each(?2) AS batch
        CROSS JOIN timers INDEXED BY timers_key
            ON timers.filed = 1 AND timers.namespace = ?1 AND timers.id = batch.value)
"""

_encode = msgspec.json.Encoder().encode


def append_timers(transaction: Transaction, requests: Sequence[CreateRequest]) -> bool:
    """Append the timers if that is all there is to do: if every key is new and comes once.
    Otherwise nothing happens."""
    timers = [request.timer for request in requests]
    if not _is_simple(requests):
        return False
    options = transaction.unfiled.options
    near: list[Timer] = []
    far: list[Timer] = []
    for timer in timers:
        (far if _can_wait(timer, options) else near).append(timer)
    if transaction.unfiled_count + len(far) > options.max_unfiled:
        file_slice(transaction, 2 * len(far))
    if _any_filed(transaction, timers) or any_unfiled(transaction, near):
        return False
    (last_row,) = transaction.first(LAST_ROW_ID)
    first_row = max(last_row + len(near), transaction.unfiled.highest_row) + 1
    if not add_keys(transaction, far, first_row):
        return False
    insert_absent(transaction, near)
    if far:
        _append(transaction, far, first_row)
        note_appended(transaction, first_row, first_row + len(far) - 1)
    for namespace, created in Counter([timer.key.namespace for timer in far]).items():
        transaction.count(namespace, TimerStatus.PENDING, created)
    return True


def _can_wait(timer: Timer, options: FilingOptions) -> bool:
    """Whether it is new in every respect, and not due soon."""
    return (
        timer.due_at - timer.created_at >= options.near_microseconds
        and timer.due_at == timer.execute_at
        and timer.updated_at == timer.created_at
    )


def _is_simple(requests: Sequence[CreateRequest]) -> bool:
    if any(request.on_existing is not OnExisting.KEEP for request in requests):
        return False
    return len({request.timer.timer_uuid for request in requests}) == len(requests)


def _any_filed(transaction: Transaction, timers: Sequence[Timer]) -> bool:
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for timer in timers:
        ids[timer.key.namespace].append(timer.key.id)
    return any(
        transaction.first(_ANY_FILED, namespace, _encode(of_namespace).decode())[0]
        for namespace, of_namespace in ids.items()
    )


def _append(transaction: Transaction, timers: Sequence[Timer], first_row: int) -> None:
    for start in range(0, len(timers), _LARGEST_APPEND):
        values: list[Any] = []
        chunk = timers[start : start + _LARGEST_APPEND]
        for row_id, timer in enumerate(chunk, first_row + start):
            namespace, id = timer.key
            values += (row_id, namespace, id, timer.shard, timer.timer_uuid, timer.created_at)
            values += asked_values(timer)
        transaction.execute(_append_statement(len(chunk)), *values)
    instants = _encode([timer.execute_at for timer in timers]).decode()
    transaction.execute(_APPEND_STATES, instants, first_row)


@cache
def _append_statement(timers: int) -> str:
    row = f"({'?,' * (_COLUMNS.count(',') + 1)}0)"
    return f"INSERT INTO timers ({_COLUMNS}, filed) VALUES {','.join([row] * timers)}"
