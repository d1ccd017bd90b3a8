"""Which unfiled timer has a key: notes that the writer's thread keeps."""

from array import array
from collections.abc import Iterable, Sequence

import apsw
import msgspec

from duetime.stores.sqlite.blocks import UUID_BYTES, number_of

NumberedUuids = tuple[int, bytes]
"""The uuids, one after the other, of timers whose numbers follow each other from this one on."""

# Keys are told apart by 48 bits of their timer_uuid, as a number: the quickest to look for.
_STARTS = 1 << 48
_START_MASK = _STARTS - 1
_SWEPT_AT_ONCE = _STARTS // 256

# Of those that SQLite has, the size that takes the least time to add keys.
_PAGE_BYTES = 16_384

_CREATE = """
    CREATE TABLE unfiled_keys (
        uuid_start     INTEGER PRIMARY KEY,
        number         INTEGER NOT NULL
    ) STRICT
"""
_ADD = "INSERT OR {otherwise} INTO unfiled_keys SELECT value, ?2 + rowid - 1 FROM carray(?1)"
_ADD_OR_FAIL = _ADD.format(otherwise="FAIL")
_ADD_OR_IGNORE = _ADD.format(otherwise="IGNORE")
_REMOVE = """
    DELETE FROM unfiled_keys WHERE uuid_start IN (SELECT value FROM carray(?1)) AND number >= ?2
"""
_TAKE_BACK = "DELETE FROM unfiled_keys WHERE number >= ?1"
_FIND = """
    SELECT json_group_array(number) FROM unfiled_keys
    WHERE uuid_start IN (SELECT value FROM carray(?1))
"""
_SWEEP = "DELETE FROM unfiled_keys WHERE uuid_start >= ?1 AND uuid_start < ?2 AND number < ?3"
_FORGET = "DELETE FROM unfiled_keys"

_decode_numbers = msgspec.json.Decoder(list[int]).decode


class UnfiledKeys:
    """A database of its own in memory, 24 bytes a key, in which nothing is committed or rolled
    back: for that SQLite would have to copy a page for nearly every key, which takes longer than
    all the rest. Who adds keys and does not commit takes them back.

    A timer whose start is taken is filed with its creation, whether the key is the same or,
    hardly ever, another one. The keys of what is filed are not taken out at once but swept out in
    their order, some of them at a time.
    """

    def __init__(self) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.pragma("journal_mode", "off")
        self._connection.pragma("page_size", _PAGE_BYTES)
        self._connection.execute(_CREATE)
        self._connection.execute("BEGIN")
        self._end_number = 0
        self._swept_up_to = 0

    def load(self, blocks: Iterable[tuple[int, bytes]]) -> int:
        """Add the keys of blocks that are there, each an id and its uuids; how many they are."""
        loaded = 0
        for block_id, uuids in blocks:
            # Not all of them are whole where the file was damaged.
            starts = _starts(uuids[: len(uuids) // UUID_BYTES * UUID_BYTES])
            if starts:
                self._add(_ADD_OR_IGNORE, starts, number_of(block_id))
            loaded += len(starts)
        return loaded

    def add(self, groups: Sequence[NumberedUuids]) -> bool:
        """Add the keys of timers that are to be put away, with numbers that are higher than any
        before. Not if one of the keys is there already."""
        try:
            for number, uuids in groups:
                self._add(_ADD_OR_FAIL, _starts(uuids), number)
        except apsw.ConstraintError:
            for number, uuids in groups:
                self._connection.execute(_REMOVE, (apsw.carray(_starts(uuids)), number))
            return False
        return True

    def take_back(self, first_number: int) -> None:
        """Forget the keys that have this number and higher ones. All keys have to be read."""
        if first_number < self._end_number:
            self._connection.execute(_TAKE_BACK, (first_number,))
            self._end_number = first_number

    def find(self, timer_uuids: Iterable[bytes]) -> list[int]:
        """The numbers that unfiled timers of these keys may have."""
        starts = _starts(b"".join(timer_uuids))
        if not starts:
            return []
        return _decode_numbers(self._connection.execute(_FIND, (apsw.carray(starts),)).get)

    def sweep(self, first_block: int) -> None:
        """Forget keys of what is filed, which is everything before this block: from a part of the
        keys, each time the next one."""
        end = self._swept_up_to + _SWEPT_AT_ONCE
        values = (self._swept_up_to, end, number_of(first_block))
        self._connection.execute(_SWEEP, values)
        self._swept_up_to = end % _STARTS

    def forget_all(self) -> None:
        self._connection.execute(_FORGET)

    def close(self) -> None:
        self._connection.close()

    def _add(self, statement: str, starts: "array[int]", first_number: int) -> None:
        self._end_number = first_number + len(starts)
        self._connection.execute(statement, (apsw.carray(starts), first_number))


def _starts(uuids: bytes) -> "array[int]":
    halves = array("q", uuids)
    return array("q", [half & _START_MASK for half in halves[::2]])
