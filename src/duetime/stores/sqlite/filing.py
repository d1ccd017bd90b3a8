"""Giving the timers of large batches rows of their own, some time after they were created."""

from collections.abc import Callable, Iterable

import apsw
import msgspec
import structlog

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey, timer_uuid_of
from duetime.domain.timer import Timer
from duetime.stores.sqlite.blocks import (
    BLOCK_COLUMNS,
    BLOCK_TIMERS,
    Block,
    UnfiledTimer,
    block_of,
    place_of,
)
from duetime.stores.sqlite.inserting import insert_unfiled
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions, Unfiled

_LAST_BLOCK = "SELECT coalesce(max(block_id), 0) FROM unfiled_blocks"
_UUIDS = "SELECT block_id, uuids FROM unfiled_blocks ORDER BY block_id"
_FIRST_BLOCK = "SELECT min(block_id) FROM unfiled_blocks"

# Without what was set aside, which is nothing as a rule.
_OLDEST_BLOCKS = """
    SELECT block_id FROM unfiled_blocks WHERE block_id NOT IN (SELECT value FROM json_each(?1))
    ORDER BY block_id LIMIT ?2
"""
_BLOCKS_BY_DUE = """
    SELECT {columns} FROM unfiled_blocks INDEXED BY unfiled_blocks_due
    WHERE first_due <= ?2 AND block_id NOT IN (SELECT value FROM json_each(?1))
    ORDER BY first_due, first_uuid LIMIT ?3
"""
_DUE_BLOCKS = _BLOCKS_BY_DUE.format(columns="block_id, first_due, first_uuid")
_WHOLE_BLOCKS_BY_DUE = _BLOCKS_BY_DUE.format(columns=BLOCK_COLUMNS)
_NO_LIMIT = -1
_END_OF_TIME = 2**63 - 1

_GIVEN = "unfiled_blocks WHERE block_id IN (SELECT value FROM json_each(?1))"
_FETCH = f"SELECT {BLOCK_COLUMNS} FROM {_GIVEN}"
_DELETE = f"DELETE FROM {_GIVEN}"

_encode = msgspec.json.Encoder().encode

_log = structlog.get_logger()


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


def unfiled_neighbours(
    transaction: Transaction, timer_uuids: Iterable[bytes]
) -> list[UnfiledTimer]:
    """All timers of the blocks that have timers of these keys, as far as they can be filed."""
    numbers = transaction.find_unfiled(timer_uuids)
    blocks = _fetch(transaction, {place_of(number)[0] for number in numbers})
    return [timer for block in blocks for timer in _timers_in(transaction, block)]


def file_due(
    transaction: Transaction,
    until_inclusive: Instant,
    room_before: Callable[[Instant, bytes], int],
) -> None:
    """File what a claim up to this instant has to see, block by block in the order of claims.

    `room_before` tells how many timers more than are filed the claim could take before this due
    instant and timer_uuid: when very many are due at once, each claim files its share.
    """
    while transaction.unfiled_count:
        aside = _set_aside(transaction)
        found = transaction.first(_DUE_BLOCKS, aside, until_inclusive, 1)
        if found is None:
            return
        _, first_due, first_uuid = found
        room = room_before(Instant(first_due), first_uuid)
        if room <= 0:
            return
        # There is room for all of their timers, so none of them is filed too early.
        blocks = transaction.execute(
            _DUE_BLOCKS, aside, until_inclusive, max(1, room // BLOCK_TIMERS)
        )
        _file_blocks(transaction, [block_id for block_id, *_ in blocks])


def earliest_unfiled(transaction: Transaction, shards: set[ShardNumber]) -> Instant | None:
    """When the first unfiled timer of these shards is due."""
    earliest: Instant | None = None
    if not transaction.unfiled_count or not shards:
        return earliest
    by_due = (_set_aside(transaction), _END_OF_TIME, _NO_LIMIT)
    for row in transaction.execute(_WHOLE_BLOCKS_BY_DUE, *by_due):
        block = block_of(row)
        if earliest is not None and block.content.first_due >= earliest:
            break
        for timer in _timers_in(transaction, block):
            if timer.shard in shards and (earliest is None or timer.execute_at < earliest):
                earliest = timer.execute_at
    return earliest


def file_slice(transaction: Transaction, timers: int) -> None:
    """File the oldest unfiled timers, about so many."""
    blocks = max(1, timers // BLOCK_TIMERS)
    found = transaction.execute(_OLDEST_BLOCKS, _set_aside(transaction), blocks)
    _file_blocks(transaction, [block_id for (block_id,) in found])
    (transaction.first_block,) = transaction.first(_FIRST_BLOCK)


def _file_keys(transaction: Transaction, timer_uuids: Iterable[bytes]) -> None:
    numbers = transaction.find_unfiled(timer_uuids)
    _file_blocks(transaction, {place_of(number)[0] for number in numbers})


def _file_blocks(transaction: Transaction, block_ids: Iterable[int]) -> None:
    """Some of them may have been filed before."""
    blocks = _fetch(transaction, block_ids)
    timers = {block.block_id: _timers_in(transaction, block) for block in blocks}
    to_file = [timer for of_block in timers.values() for timer in of_block]
    if to_file:
        insert_unfiled(transaction, to_file)
        filed = [block_id for block_id, of_block in timers.items() if of_block]
        transaction.execute(_DELETE, _encode(filed).decode())
        transaction.filed += len(to_file)


def _fetch(transaction: Transaction, block_ids: Iterable[int]) -> list[Block]:
    ids = _encode(sorted(block_ids)).decode()
    return [block_of(row) for row in transaction.execute(_FETCH, ids)]


def _timers_in(transaction: Transaction, block: Block) -> list[UnfiledTimer]:
    """The timers of a block; none if it cannot be read. Then it is left out from now on."""
    try:
        return block.content.unfiled_timers()
    except (msgspec.DecodeError, ValueError) as error:
        if block.block_id not in transaction.unfiled.set_aside:
            _log.error("sqlite.block_unreadable", block=block.block_id, error=str(error))
            transaction.unfiled.set_aside.add(block.block_id)
        return []


def _set_aside(transaction: Transaction) -> str:
    return _encode(list(transaction.unfiled.set_aside)).decode()
