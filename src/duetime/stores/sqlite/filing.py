"""Putting timers of large batches into the indexes, some time after they were created."""

from collections.abc import Iterable

import apsw

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions, Unfiled

AHEAD_MICROSECONDS = 10 * MICROSECONDS_PER_SECOND
"""A claim that meets unfiled timers files all that are due until then: finding them means
reading every unfiled row."""

UNFILED_RANGE = """
    row_id BETWEEN (SELECT first_row FROM unfiled) AND (SELECT last_row FROM unfiled)
"""

_LOAD = f"""
    SELECT timer_uuid, row_id, shard, due_at FROM live_timers NOT INDEXED
    WHERE {UNFILED_RANGE} AND filed = 0
"""

_NEXT_SLICE = f"""
    SELECT row_id, timer_uuid FROM live_timers NOT INDEXED
    WHERE {UNFILED_RANGE} AND filed = 0 ORDER BY row_id LIMIT ?1
"""

_DUE_ROWS = f"""
    SELECT row_id, timer_uuid FROM live_timers NOT INDEXED
    WHERE {UNFILED_RANGE} AND filed = 0 AND due_at <= ?1
"""

_EARLIEST_DUE = f"""
    SELECT shard, min(due_at) FROM live_timers NOT INDEXED
    WHERE {UNFILED_RANGE} AND filed = 0 GROUP BY shard
"""

_FILE_TIMERS = """
    UPDATE timers SET filed = 1
    WHERE row_id IN (SELECT value FROM json_each(?1)) AND filed = 0
"""
_FILE_LIVE = """
    UPDATE live_timers SET filed = 1
    WHERE row_id IN (SELECT value FROM json_each(?1)) AND filed = 0
"""

# A row id may be lower than earlier ones, when those that had the highest are gone.
_EXTEND_RANGE = """
    UPDATE unfiled SET first_row = min(coalesce(first_row, ?1), ?1),
                       last_row = max(coalesce(last_row, ?2), ?2)
"""
_ADVANCE_RANGE = "UPDATE unfiled SET first_row = ?1"
_CLEAR_RANGE = "UPDATE unfiled SET first_row = NULL, last_row = NULL"


def load_unfiled(connection: apsw.Connection, options: FilingOptions) -> Unfiled:
    """What earlier processes left unfiled."""
    unfiled = Unfiled(options)
    unfiled.load(connection.execute(_LOAD))
    return unfiled


def note_unfiled(transaction: Transaction, first_row: int, last_row: int) -> None:
    """The rows of this range may be unfiled."""
    transaction.execute(_EXTEND_RANGE, first_row, last_row)


def file_key(transaction: Transaction, key: TimerKey) -> None:
    """File the timer of this key if it is not, so that it can be found and written."""
    row_id = transaction.unfiled.row_of(key)
    if row_id is not None:
        file_rows(transaction, [row_id])


def file_rows(transaction: Transaction, row_ids: Iterable[int]) -> None:
    rows = str(list(row_ids))
    transaction.execute(_FILE_TIMERS, rows)
    transaction.execute(_FILE_LIVE, rows)


def file_due(transaction: Transaction, until_inclusive: Instant) -> None:
    """File what a claim up to this instant has to see."""
    unfiled = transaction.unfiled
    if not unfiled:
        return
    if not unfiled.earliest_is_exact:
        correct_earliest_due(transaction)
    if not any(due_at <= until_inclusive for due_at in unfiled.earliest_due.values()):
        return
    found = list(transaction.execute(_DUE_ROWS, until_inclusive + AHEAD_MICROSECONDS))
    file_rows(transaction, [row_id for row_id, _ in found])
    transaction.filed([timer_uuid for _, timer_uuid in found])
    correct_earliest_due(transaction)


def correct_earliest_due(transaction: Transaction) -> None:
    earliest = {
        ShardNumber(shard): Instant(due_at) for shard, due_at in transaction.execute(_EARLIEST_DUE)
    }
    transaction.unfiled.correct_earliest_due(earliest)


def file_slice(transaction: Transaction, limit: int) -> None:
    """File the oldest unfiled timers. Their rows are neighbours, and so is what is written.

    Must come before anything is appended in the same transaction.
    """
    found = list(transaction.execute(_NEXT_SLICE, limit))
    if found:
        file_rows(transaction, [row_id for row_id, _ in found])
    if len(found) < limit:
        transaction.execute(_CLEAR_RANGE)
        # Whatever is remembered besides was filed in other ways, or never committed.
        transaction.filed(transaction.unfiled.timer_uuids())
    else:
        transaction.execute(_ADVANCE_RANGE, found[-1][0] + 1)
        transaction.filed([timer_uuid for _, timer_uuid in found])
