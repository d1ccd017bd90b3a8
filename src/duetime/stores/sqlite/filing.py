"""Putting timers of large batches into the indexes, some time after they were created."""

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber, TimerKey, timer_uuid_of
from duetime.domain.timer import Timer
from duetime.stores.sqlite.notes import attach_notes
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions, Unfiled

AHEAD_MICROSECONDS = 10 * MICROSECONDS_PER_SECOND
"""A claim that meets unfiled timers files all that are due until then: finding them means
reading every unfiled row."""

KEYS_CACHE_KIB = 24_576
"""The keys of a million unfiled timers take about as much; what is more goes to a file."""

UNFILED_RANGE = """
    row_id BETWEEN (SELECT first_row FROM unfiled) AND (SELECT last_row FROM unfiled)
"""

# Which row may be a key's is told by the first bytes of its timer_uuid, as a number: that is the
# quickest to write in random order. A timer whose number is taken is filed with its creation,
# whether the key is the same or, hardly ever, another one. What is filed is not taken out at
# once but swept out in the order of the numbers, some of them with each slice.
_CREATE_KEYS = """
    CREATE TABLE notes.unfiled_keys (
        uuid_start     INTEGER PRIMARY KEY,
        row_id         INTEGER NOT NULL
    ) STRICT
"""
_UUID_START_BYTES = 6
_UUID_STARTS = 1 << (8 * _UUID_START_BYTES)
_SWEPT_AT_ONCE = _UUID_STARTS // 256

# Whoever writes by OR FAIL rolls back all of its transaction when it fails, so that SQLite need
# not be able to roll back the one statement.
_UNFILED_KEYS = f"""
    SELECT timer_uuid, row_id FROM live_timers NOT INDEXED WHERE {UNFILED_RANGE} AND filed = 0
"""
_LOAD_KEY = "INSERT OR IGNORE INTO unfiled_keys VALUES (?1, ?2)"
_ADD_KEYS = """
    INSERT OR FAIL INTO unfiled_keys SELECT value, ?2 + key FROM json_each(?1)
"""
_TAKE_BACK_KEYS = """
    DELETE FROM unfiled_keys
    WHERE uuid_start IN (SELECT value FROM json_each(?1)) AND row_id >= ?2
"""
_FIND_ROWS = """
    SELECT json_group_array(row_id) FROM unfiled_keys
    WHERE uuid_start IN (SELECT value FROM json_each(?1))
"""
_SWEEP = """
    DELETE FROM unfiled_keys
    WHERE uuid_start >= ?1 AND uuid_start < ?2 AND row_id < (SELECT first_row FROM unfiled)
"""
_SWEEP_ALL = "DELETE FROM unfiled_keys"
_LAST_ROW = "SELECT last_row FROM unfiled"
_END_OF_SLICE = f"""
    SELECT count(*), max(row_id) FROM (
        SELECT row_id FROM live_timers NOT INDEXED
        WHERE {UNFILED_RANGE} AND filed = 0 ORDER BY row_id LIMIT ?1)
"""
_DUE_ROWS = f"""
    SELECT json_group_array(row_id) FROM live_timers NOT INDEXED
    WHERE {UNFILED_RANGE} AND filed = 0 AND due_at <= ?1
"""

_EARLIEST_DUE = """
    SELECT json_group_array(json_array(shard, due_at)) FROM (
        SELECT shard, min(due_at) AS due_at FROM live_timers NOT INDEXED
        WHERE {rows} AND filed = 0 GROUP BY shard)
"""
_EARLIEST_OF_ALL = _EARLIEST_DUE.format(rows=UNFILED_RANGE)
_EARLIEST_OF_NEW = _EARLIEST_DUE.format(rows="row_id BETWEEN ?1 AND ?2")

_GIVEN = "row_id IN (SELECT value FROM json_each(?1)) AND filed = 0"
_IN_SLICE = "row_id BETWEEN (SELECT first_row FROM unfiled) AND ?1 AND filed = 0"
_FILE_TIMERS = "UPDATE OR FAIL timers SET filed = 1 WHERE {rows}"
_FILE_LIVE = "UPDATE OR FAIL live_timers SET filed = 1 WHERE {rows}"

_EXTEND_RANGE = "UPDATE unfiled SET first_row = coalesce(first_row, ?1), last_row = ?2"
_ADVANCE_RANGE = "UPDATE unfiled SET first_row = ?1"
_CLEAR_RANGE = "UPDATE unfiled SET first_row = NULL, last_row = NULL"

_encode = msgspec.json.Encoder().encode
_decode_earliest = msgspec.json.Decoder(list[tuple[int, int]]).decode


def load_unfiled(connection: apsw.Connection, options: FilingOptions) -> Unfiled:
    """What earlier processes left unfiled. The connection gets notes that find it."""
    attach_notes(connection, KEYS_CACHE_KIB)
    connection.execute(_CREATE_KEYS)
    unfiled = Unfiled(options)
    unfiled_keys = connection.execute(_UNFILED_KEYS)
    found = sorted((_uuid_start(timer_uuid), row_id) for timer_uuid, row_id in unfiled_keys)
    with connection:
        connection.executemany(_LOAD_KEY, found)
    unfiled.committed(appended=len(found), filed=0)
    unfiled.highest_row = connection.execute(_LAST_ROW).get or 0
    unfiled.correct_earliest_due(dict(_earliest(connection.execute(_EARLIEST_OF_ALL).get)))
    return unfiled


def add_keys(transaction: Transaction, timers: Sequence[Timer], first_row: int) -> bool:
    """Note the keys of timers that are to be appended. Not if one of them is there already."""
    starts = _uuid_starts([timer.timer_uuid for timer in timers])
    try:
        transaction.execute(_ADD_KEYS, starts, first_row)
    except apsw.ConstraintError:
        transaction.execute(_TAKE_BACK_KEYS, starts, first_row)
        return False
    return True


def note_appended(transaction: Transaction, first_row: int, last_row: int) -> None:
    """These rows have been appended, and their keys added."""
    transaction.execute(_EXTEND_RANGE, first_row, last_row)
    (earliest,) = transaction.first(_EARLIEST_OF_NEW, first_row, last_row)
    transaction.unfiled.add_earliest_due(_earliest(earliest))
    transaction.unfiled.highest_row = last_row
    transaction.appended += last_row - first_row + 1


def any_unfiled(transaction: Transaction, timers: Sequence[Timer]) -> bool:
    """Whether one of the keys may be that of an unfiled timer."""
    return find_unfiled(transaction, [timer.timer_uuid for timer in timers]) != "[]"


def find_unfiled(transaction: Transaction, timer_uuids: Sequence[bytes]) -> str:
    """The rows where unfiled timers of these keys may be, as JSON."""
    if not transaction.unfiled_count or not timer_uuids:
        return "[]"
    rows: str = transaction.first(_FIND_ROWS, _uuid_starts(timer_uuids))[0]
    return rows


def file_key(transaction: Transaction, key: TimerKey) -> None:
    """File the timer of this key if it is not, so that it can be found and written."""
    _file_rows(transaction, find_unfiled(transaction, [timer_uuid_of(key)]))


def file_timers(transaction: Transaction, timers: Iterable[Timer]) -> None:
    """File what there is of these timers' keys."""
    _file_rows(transaction, find_unfiled(transaction, [timer.timer_uuid for timer in timers]))


def file_due(transaction: Transaction, until_inclusive: Instant) -> None:
    """File what a claim up to this instant has to see."""
    unfiled = transaction.unfiled
    if not transaction.unfiled_count:
        return
    if not unfiled.earliest_is_exact:
        _correct_earliest_due(transaction)
    if not any(due_at <= until_inclusive for due_at in unfiled.earliest_due.values()):
        return
    _file_rows(transaction, transaction.first(_DUE_ROWS, until_inclusive + AHEAD_MICROSECONDS)[0])
    _correct_earliest_due(transaction)


def file_slice(transaction: Transaction, limit: int) -> None:
    """File the oldest unfiled timers. Their rows are neighbours, and so is what is written."""
    found, last_row = transaction.first(_END_OF_SLICE, limit)
    if found:
        _file(transaction, _IN_SLICE, last_row)
    if found < limit:
        transaction.execute(_CLEAR_RANGE)
        transaction.execute(_SWEEP_ALL)
    else:
        transaction.execute(_ADVANCE_RANGE, last_row + 1)
        _sweep(transaction)


def _sweep(transaction: Transaction) -> None:
    """Take out the keys of filed timers from a part of the numbers, each time the next one."""
    start = transaction.unfiled.swept_up_to
    end = start + _SWEPT_AT_ONCE
    transaction.execute(_SWEEP, start, end)
    transaction.unfiled.swept_up_to = end % _UUID_STARTS


def _file_rows(transaction: Transaction, rows: str) -> None:
    if rows != "[]":
        _file(transaction, _GIVEN, rows)


def _file(transaction: Transaction, which: str, value: str | int) -> None:
    transaction.execute(_FILE_TIMERS.format(rows=which), value)
    transaction.execute(_FILE_LIVE.format(rows=which), value)
    transaction.filed += transaction.changes


def _correct_earliest_due(transaction: Transaction) -> None:
    (earliest,) = transaction.first(_EARLIEST_OF_ALL)
    transaction.unfiled.correct_earliest_due(dict(_earliest(earliest)))


def _earliest(text: str) -> list[tuple[ShardNumber, Instant]]:
    return [(ShardNumber(shard), Instant(due_at)) for shard, due_at in _decode_earliest(text)]


def _uuid_starts(timer_uuids: Iterable[bytes]) -> str:
    return _encode(list(map(_uuid_start, timer_uuids))).decode()


def _uuid_start(timer_uuid: bytes) -> int:
    return int.from_bytes(timer_uuid[:_UUID_START_BYTES], "big")
