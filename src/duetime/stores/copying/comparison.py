"""Comparing two stores by count and checksum, and naming some of the rows that differ."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from duetime.ports.inspection import MAX_EXAMPLES
from duetime.stores.copying.checksums import (
    Checksum,
    Checksums,
    Group,
    bucket_of,
    hash_of,
    key_of,
)
from duetime.stores.copying.ports import CopySource
from duetime.stores.copying.tables import Table
from duetime.stores.copying.transfer import Advance, timers_in

_NOTHING = Checksum(0, 0)
_NAMELESS = {Table.SHARDS, Table.CLOCK}
"""Tables whose keys are numbers that mean nothing to a person."""


class Difference(Struct, frozen=True):
    """A group of rows whose count or checksum is not the same on both sides."""

    group: Group
    source: Checksum
    target: Checksum


async def read_checksums(source: CopySource, advance: Advance) -> dict[Group, Checksum]:
    """The checksums of everything in a store."""
    checksums = Checksums()
    async for batch in source.batches(None, in_order=False):
        checksums.add(batch)
        advance(timers_in(batch))
    return checksums.result()


def differences(
    source: Mapping[Group, Checksum], target: Mapping[Group, Checksum]
) -> list[Difference]:
    return [
        Difference(group, source.get(group, _NOTHING), target.get(group, _NOTHING))
        for group in sorted(source.keys() | target.keys(), key=repr)
        if source.get(group) != target.get(group)
    ]


async def rows_that_differ(source: CopySource, target: CopySource, tables: set[Table]) -> list[str]:
    """The names of a few rows that are missing, surplus or different, in any of the tables whose
    rows have names.

    Both sides are read twice: first to find buckets of keys that differ, then for the rows of some
    of these. No more than a few buckets are held in memory."""
    named = tables - _NAMELESS
    if not named:
        return []
    ours, theirs = await asyncio.gather(_buckets(source, named), _buckets(target, named))
    wrong = sorted(bucket for bucket in ours | theirs if ours[bucket] != theirs[bucket])
    chosen = set(wrong[:MAX_EXAMPLES])
    before, after = await asyncio.gather(_hashes(source, chosen), _hashes(target, chosen))
    names = sorted(name for name in before | after if before.get(name) != after.get(name))
    return names[:MAX_EXAMPLES]


async def _buckets(source: CopySource, tables: set[Table]) -> Counter[tuple[Table, int]]:
    sums: Counter[tuple[Table, int]] = Counter()
    async for batch in source.batches(None, in_order=False):
        if batch.table in tables:
            for row in batch.rows:
                # A row of the hash 0 counts, too.
                sums[bucket_of(batch.table, row)] += hash_of(row) + 1
    return sums


async def _hashes(source: CopySource, buckets: set[tuple[Table, int]]) -> dict[str, int]:
    tables = {table for table, _ in buckets}
    hashes: dict[str, int] = {}
    async for batch in source.batches(None, in_order=False):
        if batch.table in tables:
            for row in batch.rows:
                if bucket_of(batch.table, row) in buckets:
                    name = "/".join(key_of(batch.table, row))
                    hashes[f"{batch.table} {name}"] = hash_of(row)
    return hashes
