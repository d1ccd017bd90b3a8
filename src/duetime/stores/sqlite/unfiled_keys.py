"""Which block has the timer of a key: notes of the writer's connection."""

from array import array
from collections.abc import Iterable, Sequence

import apsw
import msgspec

from duetime.domain.timer import Timer
from duetime.stores.sqlite.blocks import number_of, uuids_in
from duetime.stores.sqlite.notes import attach_notes
from duetime.stores.sqlite.transaction import Transaction

_CACHE_KIB = 24_576
"""The keys of a million unfiled timers take about as much; what is more goes to a file."""

# A timer whose number is taken is filed with its creation, whether the key is the same or, hardly
# ever, another one. The keys of what is filed are not taken out at once but swept out in their
# order, some of them with each slice.
_CREATE = """
    CREATE TABLE notes.unfiled_keys (
        uuid_start     INTEGER PRIMARY KEY,
        number         INTEGER NOT NULL
    ) STRICT
"""
_UUIDS = "SELECT block_id, uuids FROM unfiled_blocks ORDER BY block_id"
_LOAD = "INSERT OR IGNORE INTO unfiled_keys SELECT value, ?2 + rowid - 1 FROM carray(?1)"

# Whoever writes by OR FAIL rolls back all of its transaction when it fails, so that SQLite need
# not be able to roll back the one statement.
_ADD = "INSERT OR FAIL INTO unfiled_keys SELECT value, ?2 + rowid - 1 FROM carray(?1)"
_TAKE_BACK = """
    DELETE FROM unfiled_keys WHERE uuid_start IN (SELECT value FROM carray(?1)) AND number >= ?2
"""
_FIND = """
    SELECT json_group_array(number) FROM unfiled_keys
    WHERE uuid_start IN (SELECT value FROM carray(?1))
"""
_SWEEP = "DELETE FROM unfiled_keys WHERE uuid_start >= ?1 AND uuid_start < ?2 AND number < ?3"
_SWEEP_ALL = "DELETE FROM unfiled_keys"

# Keys are told apart by the first bytes of their timer_uuid, as a number: the quickest to look for.
_START_BYTES = 6
_STARTS = 1 << (8 * _START_BYTES)
_SWEPT_AT_ONCE = _STARTS // 256

NumberedTimers = tuple[int, Sequence[Timer]]
"""Timers whose numbers follow each other from this one on."""

_decode_numbers = msgspec.json.Decoder(list[int]).decode


def load_keys(connection: apsw.Connection) -> int:
    """Note the keys that earlier processes left unfiled; how many they are."""
    attach_notes(connection, _CACHE_KIB)
    connection.execute(_CREATE)
    loaded = 0
    with connection:
        for block_id, uuids in connection.execute(_UUIDS):
            starts = _starts(uuids_in(uuids))
            connection.execute(_LOAD, (apsw.carray(starts), number_of(block_id)))
            loaded += len(starts)
    return loaded


def add_keys(transaction: Transaction, groups: Sequence[NumberedTimers]) -> bool:
    """Note the keys of timers that are to be put away. Not if one of them is there already."""
    numbered = [(_starts(timer.timer_uuid for timer in group), first) for first, group in groups]
    try:
        for starts, first in numbered:
            transaction.execute(_ADD, apsw.carray(starts), first)
    except apsw.ConstraintError:
        for starts, first in numbered:
            transaction.execute(_TAKE_BACK, apsw.carray(starts), first)
        return False
    return True


def find_numbers(transaction: Transaction, timer_uuids: Iterable[bytes]) -> list[int]:
    """The numbers that unfiled timers of these keys may have."""
    if not transaction.unfiled_count:
        return []
    starts = _starts(timer_uuids)
    return _decode_numbers(transaction.first(_FIND, apsw.carray(starts))[0]) if starts else []


def sweep_keys(transaction: Transaction, first_block: int) -> None:
    """Forget keys of what is filed, which is everything before this block: from a part of the
    keys, each time the next one."""
    start = transaction.unfiled.swept_up_to
    end = start + _SWEPT_AT_ONCE
    transaction.execute(_SWEEP, start, end, number_of(first_block))
    transaction.unfiled.swept_up_to = end % _STARTS


def forget_keys(transaction: Transaction) -> None:
    """Everything is filed."""
    transaction.execute(_SWEEP_ALL)


def _starts(timer_uuids: Iterable[bytes]) -> "array[int]":
    read = int.from_bytes
    return array("q", [read(timer_uuid[:_START_BYTES], "big") for timer_uuid in timer_uuids])
