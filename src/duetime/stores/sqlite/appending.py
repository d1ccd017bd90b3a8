"""Creating the many timers of a large batch: only put away in blocks, to be filed later."""

from collections.abc import Sequence
from functools import cache

import apsw

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite.blocks import BLOCK_TIMERS, block_row, number_of
from duetime.stores.sqlite.filing import any_unfiled, file_slice
from duetime.stores.sqlite.inserting import insert_absent
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import FilingOptions
from duetime.stores.sqlite.unfiled_keys import add_keys

_BLOCKS_PER_INSERT = 16

_ANY_FILED = """
    SELECT EXISTS (
        SELECT 1 FROM carray(?2) AS batch
        CROSS JOIN timers INDEXED BY timers_key
            ON timers.namespace = ?1 AND timers.id = batch.value)
"""


def append_timers(transaction: Transaction, requests: Sequence[CreateRequest]) -> bool:
    """Put the timers away if that is all there is to do: if every key is new and comes once.
    Otherwise nothing happens."""
    timers = [request.timer for request in requests]
    if not _is_simple(requests, timers):
        return False
    unfiled = transaction.unfiled
    near = [timer for timer in timers if not _can_wait(timer, unfiled.options)]
    far = [timer for timer in timers if _can_wait(timer, unfiled.options)] if near else timers
    if transaction.unfiled_count + len(far) > unfiled.options.max_unfiled:
        file_slice(transaction, 2 * len(far))
    ids = _ids_by_namespace(timers)
    if _any_filed(transaction, ids) or (near and any_unfiled(transaction, near)):
        return False
    if far and not add_keys(transaction, far, number_of(unfiled.next_block)):
        return False
    insert_absent(transaction, near)
    _append(transaction, far)
    for namespace, of_namespace in (_ids_by_namespace(far) if near else ids).items():
        transaction.count(namespace, TimerStatus.PENDING, len(of_namespace))
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


def _ids_by_namespace(timers: Sequence[Timer]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for timer in timers:
        namespace, id = timer.key
        if namespace in ids:
            ids[namespace].append(id)
        else:
            ids[namespace] = [id]
    return ids


def _any_filed(transaction: Transaction, ids: dict[str, list[str]]) -> bool:
    return any(
        transaction.first(_ANY_FILED, namespace, apsw.carray(tuple(of_namespace)))[0]
        for namespace, of_namespace in ids.items()
    )


def _append(transaction: Transaction, timers: Sequence[Timer]) -> None:
    unfiled = transaction.unfiled
    rows = [
        block_row(unfiled.next_block + number, timers[start : start + BLOCK_TIMERS])
        for number, start in enumerate(range(0, len(timers), BLOCK_TIMERS))
    ]
    for start in range(0, len(rows), _BLOCKS_PER_INSERT):
        chunk = rows[start : start + _BLOCKS_PER_INSERT]
        values = [value for row in chunk for value in row]
        transaction.execute(_insert_blocks(len(chunk)), *values)
    unfiled.next_block += len(rows)
    transaction.put_away += len(timers)


@cache
def _insert_blocks(blocks: int) -> str:
    columns = "block_id, first_due, first_uuid, places, asked"
    rows = ", ".join(["(?, ?, ?, ?, ?)"] * blocks)
    return f"INSERT INTO unfiled_blocks ({columns}) VALUES {rows}"
