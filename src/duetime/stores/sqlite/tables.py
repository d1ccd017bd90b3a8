"""The tables of timers: statements that read a timer's two rows, and the values of new rows."""

from collections.abc import Sequence
from typing import Any

from msgspec import json

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer
from duetime.stores.sqlite.connections import Statements
from duetime.stores.timer_rows import (
    COLUMNS,
    callback_text,
    metadata_text,
    retry_policy_text,
    timer_of,
)

Row = tuple[Any, ...]

_encode_keys = json.Encoder().encode

ASKED = (
    "namespace", "id", "shard", "timer_uuid", "created_at", "delivery_id", "callback",
    "retry_policy", "metadata", "correlation_id", "command_order", "fingerprint",
)  # fmt: skip
_DECODED = ("callback", "retry_policy", "metadata", "attempts")


def _selected(column: str) -> str:
    """Text to be decoded leaves SQLite as bytes: damaged bytes cannot be made a string."""
    qualified = f"timers.{column}" if column in ASKED else f"state.{column}"
    return f"CAST({qualified} AS BLOB)" if column in _DECODED else qualified


_SHARED = ", ".join(map(_selected, COLUMNS[:-2]))
_LIVE = f"{_SHARED}, state.claimed_at, NULL"
_FINISHED = f"{_SHARED}, NULL, state.executed_at"

LIVE_STATE = "live_timers AS state ON state.row_id = timers.row_id"
FINISHED_TABLE = "finished_timers AS state INDEXED BY finished_timers_created"
IS_OF_TIMER = """
    state.namespace = timers.namespace AND state.status IN (2, 3, 4)
    AND state.created_at = timers.created_at AND state.row_id = timers.row_id
"""
FINISHED_STATE = f"{FINISHED_TABLE} ON {IS_OF_TIMER}"

_GET = f"""
    SELECT timers.row_id, {_LIVE} FROM timers CROSS JOIN {LIVE_STATE}
    WHERE timers.namespace = ?1 AND timers.id = ?2
    UNION ALL
    SELECT timers.row_id, {_FINISHED} FROM timers CROSS JOIN {FINISHED_STATE}
    WHERE timers.namespace = ?1 AND timers.id = ?2
"""

# The timers, live or finished, of the keys in a JSON array of [namespace, id].
_GET_MANY = f"""
    SELECT timers.row_id, {_LIVE}
    FROM json_each(?1) AS asked CROSS JOIN timers
        ON timers.namespace = asked.value ->> 0 AND timers.id = asked.value ->> 1
    CROSS JOIN {LIVE_STATE}
    UNION ALL
    SELECT timers.row_id, {_FINISHED}
    FROM json_each(?1) AS asked CROSS JOIN timers
        ON timers.namespace = asked.value ->> 0 AND timers.id = asked.value ->> 1
    CROSS JOIN {FINISHED_STATE}
"""

# The timers, live or finished, whose row ids are in a JSON array.
_GET_BY_ROW_ID = f"""
    SELECT {_LIVE} FROM timers CROSS JOIN {LIVE_STATE}
    WHERE timers.row_id IN (SELECT value FROM json_each(?1))
    UNION ALL
    SELECT {_FINISHED} FROM timers CROSS JOIN {FINISHED_STATE}
    WHERE timers.row_id IN (SELECT value FROM json_each(?1))
"""

# The timers whose states have the keys in a JSON array. Each row starts with its key.
FETCH_LIVE = f"""
    SELECT timers.row_id, {_LIVE} FROM timers CROSS JOIN {LIVE_STATE}
    WHERE timers.row_id IN (SELECT value FROM json_each(?1))
"""
FETCH_FINISHED = f"""
    SELECT state.finish_number, {_FINISHED}
    FROM finished_timers AS state CROSS JOIN timers ON timers.row_id = state.row_id
    WHERE state.finish_number IN (SELECT value FROM json_each(?1))
"""

# Values: a row id, then `asked_values`.
UPDATE_ASKED = """
    UPDATE timers
    SET delivery_id = ?2, callback = ?3, retry_policy = ?4, metadata = ?5, correlation_id = ?6,
        command_order = ?7, fingerprint = ?8
    WHERE row_id = ?1
"""


def get_timer(statements: Statements, key: TimerKey) -> Timer | None:
    found = find_timer(statements, key)
    return None if found is None else found[1]


def find_timer(statements: Statements, key: TimerKey) -> tuple[int, Timer] | None:
    """The timer, live or finished, with the id of its row in `timers`."""
    row = find_row(statements, key)
    return None if row is None else (row[0], timer_of(row[1:]))


def find_row(statements: Statements, key: TimerKey) -> Row | None:
    """The id of a timer's row in `timers`, then its COLUMNS."""
    row: Row | None = statements.first(_GET, key.namespace, key.id)
    return row


def find_rows(statements: Statements, keys: Sequence[TimerKey]) -> list[Row]:
    """Like `find_row`, for many keys; in no particular order."""
    return list(statements.execute(_GET_MANY, _encode_keys(keys).decode()))


def find_rows_by_id(statements: Statements, row_ids: Sequence[int]) -> list[Row]:
    """The COLUMNS of the timers with these ids of their rows in `timers`; in no particular
    order."""
    return list(statements.execute(_GET_BY_ROW_ID, str(list(row_ids))))


def asked_values(timer: Timer) -> Row:
    """The columns of `timers` that a change may write: delivery_id, callback, retry_policy,
    metadata, correlation_id, command_order, fingerprint."""
    return (
        timer.delivery_id,
        callback_text(timer.callback),
        retry_policy_text(timer.retry_policy),
        metadata_text(timer.metadata),
        timer.correlation_id,
        timer.command_order,
        timer.fingerprint,
    )
