"""Creating the many timers of a large batch: only put away in blocks, to be filed later."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import chain

import apsw

from duetime.domain.instants import Instant
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite.blocks import BLOCK_COLUMNS, BLOCK_TIMERS, block_row, number_of
from duetime.stores.sqlite.filing import any_unfiled, file_slice
from duetime.stores.sqlite.inserting import insert_absent
from duetime.stores.sqlite.rows import Row
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions
from duetime.stores.sqlite.unfiled_keys import NumberedTimers

_BLOCKS_PER_INSERT = 16

LARGEST_BLOCK = 256 * 1024
"""In characters. Timers that do not fit in, 8 KB each, have rows of their own at once: who wants
one of them should not have to read all of its block."""

_ANY_FILED = """
    SELECT EXISTS (
        SELECT 1 FROM carray(?2) AS batch
        CROSS JOIN timers INDEXED BY timers_key
            ON timers.namespace = ?1 AND timers.id = batch.value)
"""


def append_timers(transaction: Transaction, requests: Sequence[CreateRequest]) -> bool:
    """Put the timers away if that is all there is to do: if every key is new and comes once, and
    none is very large. Otherwise none of them is created."""
    timers = [request.timer for request in requests]
    if not _is_simple(requests, timers):
        return False
    unfiled, options = transaction.unfiled, transaction.unfiled.options
    near = [timer for timer in timers if not _can_wait(timer, options)]
    far = [timer for timer in timers if _can_wait(timer, options)] if near else timers
    if transaction.unfiled_count + len(far) > options.max_unfiled:
        file_slice(transaction, 2 * len(far))
    groups = _groups(far)
    if any(_any_filed(transaction, group) for group in [*groups, *_groups(near)]):
        return False
    if near and any_unfiled(transaction, near):
        return False
    numbered = _numbered(groups, unfiled.next_block)
    if not unfiled.keys.add(numbered):
        return False
    rows = _block_rows(groups, unfiled.next_block)
    if any(len(row[-1]) > LARGEST_BLOCK for row in rows):
        unfiled.keys.remove(numbered)
        return False
    insert_absent(transaction, near)
    _insert(transaction, rows)
    for group in groups:
        transaction.put_away += len(group)
        transaction.count(group[0].key.namespace, TimerStatus.PENDING, len(group))
    return True


def _is_simple(requests: Sequence[CreateRequest], timers: Sequence[Timer]) -> bool:
    keep = OnExisting.KEEP
    if any(request.on_existing is not keep for request in requests):
        return False
    return len({timer.timer_uuid for timer in timers}) == len(timers)


def _can_wait(timer: Timer, options: FilingOptions) -> bool:
    """Whether it is new in every respect, and not due soon."""
    return (
        timer.due_at - timer.created_at >= options.near_microseconds
        and timer.due_at == timer.execute_at
        and timer.updated_at == timer.created_at
    )


def _groups(timers: Sequence[Timer]) -> list[Sequence[Timer]]:
    """The timers that may be in one block, together."""
    groups: defaultdict[tuple[str, Instant], list[Timer]] = defaultdict(list)
    for timer in timers:
        groups[timer.key[0], timer.created_at].append(timer)
    return list(groups.values())


def _any_filed(transaction: Transaction, group: Sequence[Timer]) -> bool:
    ids = tuple([timer.key[1] for timer in group])
    return bool(transaction.first(_ANY_FILED, group[0].key.namespace, apsw.carray(ids))[0])


def _block_rows(groups: Sequence[Sequence[Timer]], next_block: int) -> list[Row]:
    blocks = [group[start : start + BLOCK_TIMERS] for group in groups for start in _starts(group)]
    return [block_row(block_id, block) for block_id, block in enumerate(blocks, next_block)]


def _numbered(groups: Sequence[Sequence[Timer]], next_block: int) -> list[NumberedTimers]:
    """Each group with the number of its first timer."""
    numbered = []
    for group in groups:
        numbered.append((number_of(next_block), group))
        next_block += len(_starts(group))
    return numbered


def _starts(group: Sequence[Timer]) -> range:
    """Where the blocks of a group begin."""
    return range(0, len(group), BLOCK_TIMERS)


def _insert(transaction: Transaction, rows: Sequence[Row]) -> None:
    for start in range(0, len(rows), _BLOCKS_PER_INSERT):
        chunk = rows[start : start + _BLOCKS_PER_INSERT]
        transaction.execute(_insert_blocks(len(chunk)), *chain.from_iterable(chunk))
    transaction.unfiled.next_block += len(rows)


@cache
def _insert_blocks(blocks: int) -> str:
    row = f"({', '.join('?' * (BLOCK_COLUMNS.count(',') + 1))})"
    return f"INSERT INTO unfiled_blocks ({BLOCK_COLUMNS}) VALUES {', '.join([row] * blocks)}"
