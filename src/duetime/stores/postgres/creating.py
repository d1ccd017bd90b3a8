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
from duetime.stores.postgres.rows import (
    TIMER_COLUMNS,
    callback_text,
    metadata_text,
    retry_policy_text,
    storable_or_none,
    timer_of,
)

CREATE = f"""
    SELECT {TIMER_COLUMNS}
    FROM create_timers($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""

_MAX_TRIES = 5


async def create_timers(
    connections: Connections, requests: Sequence[CreateRequest]
) -> list[CreateResult]:
    """One write, whatever is in the batch.

    A timer that exists when the new one is to be inserted, and no longer when it is to be
    answered, fails the write: it is made again.
    """
    if not requests:
        return []
    values = create_values(_one_for_each_key(requests))
    for _ in range(_MAX_TRIES):
        try:
            rows = await connections.fetch(CREATE, *values)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, asyncpg.SerializationError):
                raise
        else:
            if not rows and len(values[1]) == len(requests):
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
        [request.on_existing is OnExisting.REPLACE for request in requests],
    ]
