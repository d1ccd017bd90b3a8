"""Creating timers in batches."""

from collections.abc import Iterable, Sequence
from typing import Any

import asyncpg
from msgspec.structs import replace

from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.new_timers import CREATE_NEW, new_timer_values
from duetime.stores.postgres.rows import (
    TIMER_COLUMNS,
    callback_text,
    command_orders_of,
    metadata_text,
    retry_policy_text,
    storable_or_none,
    timer_of,
)

CREATE = f"""
    SELECT {TIMER_COLUMNS}
    FROM create_timers($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
        $17)
"""

_MAX_TRIES = 5

_MANY = 64
"""So many timers are worth a try whether they are all new. The try is in vain if one is not, and
leaves dead rows behind."""

_MAX_CAUTION = 64


class Creating:
    """Creates, and remembers whether timers that came in bulk existed already."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._caution = 1
        self._cautious_batches = 0

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        """One write, whatever is in the batch."""
        if not requests:
            return []
        wanted = _one_for_each_key(requests)
        if len(wanted) == len(requests) and await self._created_as_new(wanted):
            return [CreateResult(Existence.CREATED, request.timer) for request in requests]
        return await create_timers(self._connections, requests, wanted)

    async def _created_as_new(self, requests: Sequence[CreateRequest]) -> bool:
        """Whether all of them were new, and are created now; otherwise nothing was done."""
        look = not all(request.id_is_new for request in requests)
        if look and (len(requests) < _MANY or self._is_cautious()):
            return False
        values = new_timer_values([request.timer for request in requests], look=look)
        if values is None:
            return False
        try:
            await self._connections.fetch_value(CREATE_NEW, *values)
        except asyncpg.UniqueViolationError:
            self._caution = min(2 * self._caution, _MAX_CAUTION)
            self._cautious_batches = self._caution
            return False
        if look:
            self._caution = max(self._caution // 2, 1)
        return True

    def _is_cautious(self) -> bool:
        """Somebody who sends timers once more does so with many of them."""
        if self._cautious_batches == 0:
            return False
        self._cautious_batches -= 1
        return True


async def create_timers(
    connections: Connections, requests: Sequence[CreateRequest], wanted: Sequence[CreateRequest]
) -> list[CreateResult]:
    """Create what is `wanted`, which is one request for each key.

    A timer that exists when the new one is to be inserted, and no longer when it is to be
    answered, fails the write: it is made again.
    """
    values = create_values(wanted)
    for _ in range(_MAX_TRIES):
        try:
            rows = await connections.fetch(CREATE, *values)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, asyncpg.SerializationError):
                raise
        else:
            if not rows and len(wanted) == len(requests):
                return [CreateResult(Existence.CREATED, request.timer) for request in requests]
            met = map(timer_of, rows)
            return _answers(requests, {timer.key: timer for timer in met})
    raise StoreUnavailable("timers were forgotten as fast as they were created: try again")


def _one_for_each_key(requests: Sequence[CreateRequest]) -> Sequence[CreateRequest]:
    """Requests for the same key as one that leaves the same behind.

    That is what the last one left that replaces, with the creation of the first. They must not
    be written one after the other: then keys would be locked in no order.
    """
    if len({request.timer.key for request in requests}) == len(requests):
        return requests
    merged: dict[TimerKey, CreateRequest] = {}
    for request in requests:
        key = request.timer.key
        first = merged.setdefault(key, request)
        if first is not request and request.on_existing is OnExisting.REPLACE:
            timer = replace(request.timer, created_at=first.timer.created_at)
            merged[key] = replace(request, timer=timer, id_is_new=first.id_is_new)
    return list(merged.values())


def _answers(requests: Iterable[CreateRequest], held: dict[TimerKey, Timer]) -> list[CreateResult]:
    """What became of each request, given the timers that were there before."""
    results = []
    for request in requests:
        key = request.timer.key
        existing = held.get(key)
        if existing is None:
            result = CreateResult(Existence.CREATED, request.timer)
        elif request.on_existing is OnExisting.REPLACE and existing.status is TimerStatus.PENDING:
            result = CreateResult(Existence.REPLACED, replaced(existing, request.timer))
        else:
            result = CreateResult(Existence.EXISTING, existing)
        held[key] = result.timer
        results.append(result)
    return results


def create_values(requests: Sequence[CreateRequest]) -> list[Any]:
    timers = [request.timer for request in requests]
    return [
        not all(request.id_is_new for request in requests),
        [timer.key.namespace for timer in timers],
        [timer.key.id for timer in timers],
        [timer.shard for timer in timers],
        [timer.timer_uuid for timer in timers],
        [timer.created_at for timer in timers],
        [timer.updated_at for timer in timers],
        [timer.execute_at for timer in timers],
        [timer.due_at for timer in timers],
        [timer.delivery_id for timer in timers],
        [callback_text(timer.callback) for timer in timers],
        [retry_policy_text(timer.retry_policy) for timer in timers],
        [metadata_text(timer.metadata) for timer in timers],
        [storable_or_none(timer.correlation_id) for timer in timers],
        [timer.fingerprint for timer in timers],
        command_orders_of(timers),
        [request.on_existing is OnExisting.REPLACE for request in requests],
    ]
