"""Giving the timers of large batches rows of their own, some time after they were created."""

from collections.abc import Callable, Iterable

import apsw
import msgspec

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey, timer_uuid_of
from duetime.domain.timer import Timer
from duetime.stores.sqlite.blocks import BLOCK_COLUMNS, BLOCK_TIMERS, Block, place_of
from duetime.stores.sqlite.inserting import insert_unfiled
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions, Unfiled

_LAST_BLOCK = "SELECT coalesce(max(block_id), 0) FROM unfiled_blocks"
_UUIDS = "SELECT block_id, uuids FROM unfiled_blocks ORDER BY block_id"
_FIRST_BLOCK = "SELECT min(block_id) FROM unfiled_blocks"
_OLDEST_BLOCKS = "SELECT block_id FROM unfiled_blocks ORDER BY block_id LIMIT ?1"
_NEXT_DUE_BLOCK = """
    SELECT block_id, first_due, first_uuid FROM unfiled_blocks INDEXED BY unfiled_blocks_due
    ORDER BY first_due, first_uuid LIMIT 1
"""
_BLOCKS_BY_DUE = f"""
    SELECT {BLOCK_COLUMNS} FROM unfiled_blocks INDEXED BY unfiled_blocks_due
    ORDER BY first_due, first_uuid
"""

_GIVEN = "unfiled_blocks WHERE block_id IN (SELECT value FROM json_each(?1))"
_FETCH = f"SELECT {BLOCK_COLUMNS} FROM {_GIVEN}"
_DELETE = f"DELETE FROM {_GIVEN}"

_encode = msgspec.json.Encoder().encode


def load_unfiled(connection: apsw.Connection, options: FilingOptions) -> Unfiled:
    """What earlier processes left unfiled."""
    unfiled = Unfiled(options)
    unfiled.committed(put_away=unfiled.keys.load(connection.execute(_UUIDS)), filed=0)
    unfiled.next_block = connection.execute(_LAST_BLOCK).get + 1
    return unfiled


def any_unfiled(transaction: Transaction, timers: Iterable[Timer]) -> bool:
    """Whether one of the keys may be that of an unfiled timer."""
    return bool(transaction.find_unfiled(timer.timer_uuid for timer in timers))


def file_key(transaction: Transaction, key: TimerKey) -> None:
    """File the timer of this key if it is not, so that it can be found and written."""
    _file_keys(transaction, [timer_uuid_of(key)])


def file_timers(transaction: Transaction, timers: Iterable[Timer]) -> None:
    """File what there is of these timers' keys."""
    _file_keys(transaction, (timer.timer_uuid for timer in timers))


def file_due(
    transaction: Transaction,
    until_inclusive: Instant,
    is_enough: Callable[[Instant, bytes], bool],
) -> None:
    """File what a claim up to this instant has to see, block by block in the order of claims.

    `is_enough` tells whether the claim has all it can take before this due instant and
    timer_uuid: when very many are due at once, each claim files its share.
    """
    while transaction.unfiled_count:
        found = transaction.first(_NEXT_DUE_BLOCK)
        if found is None:
            return
        block_id, first_due, first_uuid = found
        if first_due > until_inclusive or is_enough(Instant(first_due), first_uuid):
            return
        _file_blocks(transaction, [block_id])


def earliest_unfiled(transaction: Transaction, shards: set[ShardNumber]) -> Instant | None:
    """When the first unfiled timer of these shards is due."""
    earliest: Instant | None = None
    if not transaction.unfiled_count or not shards:
        return earliest
    for row in transaction.execute(_BLOCKS_BY_DUE):
        block = Block(*row)
        if earliest is not None and block.first_due >= earliest:
            break
        due_at = block.earliest_of(shards)
        if due_at is not None and (earliest is None or due_at < earliest):
            earliest = due_at
    return earliest


def file_slice(transaction: Transaction, timers: int) -> None:
    """File the oldest unfiled timers, about so many."""
    blocks = max(1, timers // BLOCK_TIMERS)
    _file_blocks(transaction, [id for (id,) in transaction.execute(_OLDEST_BLOCKS, blocks)])
    (transaction.first_block,) = transaction.first(_FIRST_BLOCK)


def _file_keys(transaction: Transaction, timer_uuids: Iterable[bytes]) -> None:
    numbers = transaction.find_unfiled(timer_uuids)
    _file_blocks(transaction, {place_of(number)[0] for number in numbers})


def _file_blocks(transaction: Transaction, block_ids: Iterable[int]) -> None:
    """Some of them may have been filed before."""
    ids = _encode(sorted(block_ids)).decode()
    timers = [
        timer for row in transaction.execute(_FETCH, ids) for timer in Block(*row).unfiled_timers()
    ]
    if timers:
        insert_unfiled(transaction, timers)
        transaction.execute(_DELETE, ids)
        transaction.filed += len(timers)
