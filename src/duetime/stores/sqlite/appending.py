"""Creating the many timers of a large batch: only put away in blocks, to be filed later."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

import apsw

from duetime.domain.timer import TimerStatus
from duetime.stores.sqlite.blocks import BLOCK_COLUMNS, BlockContent, number_of
from duetime.stores.sqlite.filing import any_unfiled, file_slice
from duetime.stores.sqlite.inserting import insert_absent
from duetime.stores.sqlite.packing import BlockSeries, Pack
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled_keys import NumberedUuids

_BLOCKS_PER_INSERT = 16

_ANY_FILED = """
    SELECT EXISTS (
        SELECT 1 FROM carray(?2) AS batch
        CROSS JOIN timers INDEXED BY timers_key
            ON timers.namespace = ?1 AND timers.id = batch.value)
"""


def append_pack(transaction: Transaction, pack: Pack) -> bool:
    """Put the timers away if that is all there is to do: if every key is new. Otherwise none of
    them is created."""
    unfiled, options = transaction.unfiled, transaction.unfiled.options
    far = len(pack.timers) - len(pack.near)
    if transaction.unfiled_count + far > options.max_unfiled:
        file_slice(transaction, 2 * far)
    if any(_any_filed(transaction, namespace, ids) for namespace, ids in _keys(pack)):
        return False
    if pack.near and any_unfiled(transaction, pack.near):
        return False
    if not unfiled.keys.add(_numbered(pack.series, unfiled.next_block)):
        return False
    insert_absent(transaction, pack.near)
    _insert(transaction, [block for each in pack.series for block in each.blocks])
    for each in pack.series:
        transaction.put_away += len(each.ids)
        transaction.count(each.namespace, TimerStatus.PENDING, len(each.ids))
    return True


def _keys(pack: Pack) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Ids by namespace."""
    near: defaultdict[str, list[str]] = defaultdict(list)
    for timer in pack.near:
        near[timer.key.namespace].append(timer.key.id)
    for each in pack.series:
        yield each.namespace, each.ids
    for namespace, ids in near.items():
        yield namespace, tuple(ids)


def _any_filed(transaction: Transaction, namespace: str, ids: tuple[str, ...]) -> bool:
    return bool(transaction.first(_ANY_FILED, namespace, apsw.carray(ids))[0])


def _numbered(all_series: Iterable[BlockSeries], next_block: int) -> list[NumberedUuids]:
    numbered = []
    for each in all_series:
        numbered.append((number_of(next_block), each.uuids))
        next_block += len(each.blocks)
    return numbered


def _insert(transaction: Transaction, blocks: Sequence[BlockContent]) -> None:
    for start in range(0, len(blocks), _BLOCKS_PER_INSERT):
        chunk = blocks[start : start + _BLOCKS_PER_INSERT]
        values: list[object] = []
        for block_id, block in enumerate(chunk, transaction.unfiled.next_block + start):
            values.append(block_id)
            values += block
        transaction.execute(_insert_blocks(len(chunk)), *values)
    transaction.unfiled.next_block += len(blocks)


@cache
def _insert_blocks(blocks: int) -> str:
    row = f"({', '.join('?' * (BLOCK_COLUMNS.count(',') + 1))})"
    return f"INSERT INTO unfiled_blocks ({BLOCK_COLUMNS}) VALUES {', '.join([row] * blocks)}"
