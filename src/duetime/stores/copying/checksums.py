"""Counts and checksums of a store's content, whatever the order in which it is read."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

import msgspec

from duetime.stores.copying.ports import Batch
from duetime.stores.copying.tables import ID, NAMESPACE, STATUS, Row, Table

BUCKETS = 4_096
"""Groups of keys that are compared on their own, to find the rows that differ."""

_MODULUS = 2**64
_encode = msgspec.msgpack.Encoder().encode


class Group(NamedTuple):
    """Rows that are counted together: the timers of a namespace and status, or a whole table."""

    table: Table
    namespace: str | None = None
    status: int | None = None


class Checksum(NamedTuple):
    """`total` is the sum of the rows' hashes of 64 bits, modulo 2**64."""

    rows: int
    total: int


class Checksums:
    """The checksum of each group of rows that were added."""

    def __init__(self) -> None:
        self._counts: dict[Group, int] = {}
        self._totals: dict[Group, int] = {}

    def add(self, batch: Batch) -> None:
        groups = _groups_of(batch)
        counts, totals = self._counts, self._totals
        for group, row in zip(groups, batch.rows, strict=True):
            counts[group] = counts.get(group, 0) + 1
            totals[group] = totals.get(group, 0) + hash_of(row)

    def result(self) -> dict[Group, Checksum]:
        return {
            group: Checksum(count, self._totals[group] % _MODULUS)
            for group, count in self._counts.items()
        }


def hash_of(row: Row) -> int:
    return int.from_bytes(blake2b(_encode(row), digest_size=8).digest())


def total_of(checksums: Iterable[Checksum]) -> Checksum:
    """The checksum of several groups together."""
    several = list(checksums)
    return Checksum(
        sum(each.rows for each in several), sum(each.total for each in several) % _MODULUS
    )


def bucket_of(table: Table, row: Row) -> tuple[Table, int]:
    return table, crc32("\0".join(key_of(table, row)).encode()) % BUCKETS


def key_of(table: Table, row: Row) -> tuple[str, ...]:
    """The name of a row, which both sides of a copy share."""
    if table is Table.TIMERS:
        return row[NAMESPACE], row[ID]
    if table is Table.LATENESS_COUNTS:
        return str(row[0]), row[1]
    return (str(row[0]),)


def _groups_of(batch: Batch) -> Sequence[Group]:
    if batch.table is not Table.TIMERS:
        return [Group(batch.table)] * len(batch.rows)
    known: dict[tuple[str, int], Group] = {}
    return [
        known.get((row[NAMESPACE], row[STATUS]))
        or known.setdefault(
            (row[NAMESPACE], row[STATUS]), Group(Table.TIMERS, row[NAMESPACE], row[STATUS])
        )
        for row in batch.rows
    ]
