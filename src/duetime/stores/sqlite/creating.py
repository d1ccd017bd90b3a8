"""Creating timers in batches."""

from collections.abc import Sequence

from msgspec import Struct

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.sqlite.appending import append_pack
from duetime.stores.sqlite.blocks import new_timer
from duetime.stores.sqlite.filing import any_unfiled, file_timers, unfiled_neighbours
from duetime.stores.sqlite.inserting import LARGEST_INSERT, LAST_ROW_ID, insert_absent
from duetime.stores.sqlite.packing import Pack, pack
from duetime.stores.sqlite.reading import get_row
from duetime.stores.sqlite.rows import UPDATE_ASKED, asked_values, timer_of
from duetime.stores.sqlite.transaction import Transaction

# A pending timer gives way to a new one of the same key; only created_at stays.
_REPLACE_STATE = """
    UPDATE live_timers
    SET updated_at = ?2, execute_at = ?3, due_at = ?4, attempt = 0, failures = 0, epoch = 0,
        attempts = NULL, last_error = NULL
    WHERE row_id = ?1
"""


def is_one_statement(transaction: Transaction, requests: Sequence[CreateRequest]) -> bool:
    """Whether creating them takes a single statement, and so needs no transaction around it."""
    return (
        len(requests) <= LARGEST_INSERT
        and len(requests) < transaction.unfiled.options.from_timers
        and all(request.on_existing is OnExisting.KEEP for request in requests)
        and not any_unfiled(transaction, [request.timer for request in requests])
    )


class LargeBatch(Struct, frozen=True):
    """Requests that came together, and their timers, packed, if they can be put away."""

    requests: Sequence[CreateRequest]
    packed: Pack | None


def create_large(
    transaction: Transaction, batches: Sequence[LargeBatch]
) -> list[list[CreateResult]]:
    """Put them away if nothing is to be found out; else give them rows."""
    return [_create(transaction, batch.requests, batch.packed) for batch in batches]


def create_timers(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> list[CreateResult]:
    """The same for requests that are not packed yet, if they are many."""
    options = transaction.unfiled.options
    packed = pack(requests, options) if len(requests) >= options.from_timers else None
    return _create(transaction, requests, packed)


def _create(
    transaction: Transaction, requests: Sequence[CreateRequest], packed: Pack | None
) -> list[CreateResult]:
    if packed is not None and append_pack(transaction, packed):
        return _all_created(packed.timers)
    timers = [request.timer for request in requests]
    if any_unfiled(transaction, timers):
        met = _met_unfiled(transaction, requests)
        others = [request for request in requests if request.timer.key not in met]
        file_timers(transaction, [request.timer for request in others])
        rest = iter(_create_filed(transaction, others))
        existing = {key: CreateResult(Existence.EXISTING, timer) for key, timer in met.items()}
        return [existing.get(request.timer.key) or next(rest) for request in requests]
    return _create_filed(transaction, requests)


def _met_unfiled(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> dict[TimerKey, Timer]:
    """The unfiled timers that requests ask for once more, and that stay as they are: somebody
    repeats a large batch, and need not wait until all of it is filed."""
    wanted = {request.timer.key: request.timer.timer_uuid for request in requests}
    for request in requests:
        if request.on_existing is not OnExisting.KEEP:
            wanted.pop(request.timer.key, None)
    found = unfiled_neighbours(transaction, wanted.values())
    return {each.key: new_timer(each) for each in found if each.key in wanted}


def _create_filed(
    transaction: Transaction, requests: Sequence[CreateRequest]
) -> list[CreateResult]:
    """Insert them all, none of which is unfiled; only when some were there already find out
    which."""
    timers = [request.timer for request in requests]
    created = insert_absent(transaction, timers)
    if created == len(timers):
        return _all_created(timers)
    (last_row_id,) = transaction.first(LAST_ROW_ID)
    return _sort_out(transaction, requests, last_row_id - created)


def _all_created(timers: Sequence[Timer]) -> list[CreateResult]:
    created = Existence.CREATED
    return [CreateResult(created, timer) for timer in timers]


def _sort_out(
    transaction: Transaction, requests: Sequence[CreateRequest], last_old_row_id: int
) -> list[CreateResult]:
    """What became of each request when some keys were there before, or twice in the batch.

    The first request for a key that has a new row made it; every other one met a timer.
    """
    results = []
    new_row_ids: set[int] = set()
    for request in requests:
        row = get_row(transaction, request.timer.key)
        assert row is not None
        row_id = row[0]
        if row_id > last_old_row_id and row_id not in new_row_ids:
            new_row_ids.add(row_id)
            results.append(CreateResult(Existence.CREATED, request.timer))
        else:
            results.append(_meet(transaction, request, row_id, timer_of(row)))
    return results


def _meet(
    transaction: Transaction, request: CreateRequest, row_id: int, existing: Timer
) -> CreateResult:
    if request.on_existing is OnExisting.KEEP or existing.status is not TimerStatus.PENDING:
        return CreateResult(Existence.EXISTING, existing)
    timer = request.timer
    transaction.execute(UPDATE_ASKED, row_id, *asked_values(timer))
    transaction.execute(_REPLACE_STATE, row_id, timer.updated_at, timer.execute_at, timer.due_at)
    return CreateResult(Existence.REPLACED, replaced(existing, timer))
