"""Which block has the timer of a key: notes of the writer's connection."""

from array import array
from collections.abc import Iterable, Sequence

import apsw
import msgspec

from duetime.domain.timer import Timer
from duetime.stores.sqlite.blocks import BLOCK_TIMERS, UUID_STARTS, number_of, uuid_start
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
_LOAD = f"""
    INSERT OR IGNORE INTO unfiled_keys
    SELECT uuid_start, block_id * {BLOCK_TIMERS} + position FROM unfiled_timers
    ORDER BY uuid_start
"""

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
_SWEPT_AT_ONCE = UUID_STARTS // 256

_decode_numbers = msgspec.json.Decoder(list[int]).decode


def load_keys(connection: apsw.Connection) -> int:
    """Note the keys that earlier processes left unfiled; how many they are."""
    attach_notes(connection, _CACHE_KIB)
    connection.execute(_CREATE)
    with connection:
        connection.execute(_LOAD)
    return int(connection.execute("SELECT count(*) FROM unfiled_timers").get)


def add_keys(transaction: Transaction, timers: Sequence[Timer], first_number: int) -> bool:
    """Note the keys of timers that are to be put away. Not if one of them is there already."""
    starts = _starts(timer.timer_uuid for timer in timers)
    try:
        transaction.execute(_ADD, apsw.carray(starts), first_number)
    except apsw.ConstraintError:
        transaction.execute(_TAKE_BACK, apsw.carray(starts), first_number)
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
    transaction.unfiled.swept_up_to = end % UUID_STARTS


def forget_keys(transaction: Transaction) -> None:
    """Everything is filed."""
    transaction.execute(_SWEEP_ALL)


def _starts(timer_uuids: Iterable[bytes]) -> "array[int]":
    return array("q", map(uuid_start, timer_uuids))
