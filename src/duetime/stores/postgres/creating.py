"""Creating timers in batches."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import asyncpg
from msgspec.structs import replace

from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import replaced
from duetime.event_loop import next_turn
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.stores.postgres.connections import Connections, Row
from duetime.stores.postgres.tables import TIMER_COLUMNS, command_orders_of, storable_or_none
from duetime.stores.timer_rows import (
    callback_text,
    existing_timer_of,
    metadata_text,
    retry_policy_text,
)

Value = TypeVar("Value")

CREATE = f"""
    SELECT {TIMER_COLUMNS}
    FROM create_timers(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
"""

CREATE_NEW = """
    SELECT create_new_timers(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21)
"""

_DECODED_AT_ONCE = 50
"""Existing timers decoded in one turn of the event loop."""

_MAX_TRIES = 5

_MANY = 64
"""Batch size from which CREATE_NEW is tried first. The try is wasted, and leaves dead rows, if a
single timer exists already."""

_MAX_CAUTIOUS_BATCHES = 64

_SEPARATOR = "\x1f"

_FIXED_BYTES = 16
"""Length of a timer's uuid, and of a fingerprint."""

_by_id = attrgetter("key.id")
_by_key = attrgetter("key")


class Creating:
    """Creates, and remembers whether large batches contained timers that existed already."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._caution = 1
        self._cautious_batches = 0

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        """Create a batch in one write."""
        if not requests:
            return []
        distinct = _one_for_each_key(requests)
        if len(distinct) == len(requests) and await self._created_as_new(distinct):
            return [CreateResult(Existence.CREATED, request.timer) for request in requests]
        values = create_values(distinct)
        return await create_or_find(
            requests, distinct, lambda: self._connections.fetch(CREATE, *values)
        )

    async def _created_as_new(self, requests: Sequence[CreateRequest]) -> bool:
        """Create the timers if all of them are new; otherwise do nothing and answer False."""
        look = not all(request.id_is_new for request in requests)
        if look and (len(requests) < _MANY or self._is_cautious()):
            return False
        values = new_timer_values([request.timer for request in requests], look=look)
        if values is None:
            return False
        try:
            await self._connections.fetch_value(CREATE_NEW, *values)
        except asyncpg.UniqueViolationError:
            self._caution = min(2 * self._caution, _MAX_CAUTIOUS_BATCHES)
            self._cautious_batches = self._caution
            return False
        if look:
            self._caution = max(self._caution // 2, 1)
        return True

    def _is_cautious(self) -> bool:
        """A client that sends existing timers again usually sends many of them."""
        if self._cautious_batches == 0:
            return False
        self._cautious_batches -= 1
        return True


async def create_or_find(
    requests: Sequence[CreateRequest],
    distinct: Sequence[CreateRequest],
    write: Callable[[], Awaitable[list[Row]]],
) -> list[CreateResult]:
    """Create the `distinct` requests, one for each key, by `write`, which answers the timers that
    existed before. Returns the results of all `requests`.

    The write fails, and is repeated, if a timer exists when the new one is inserted and is gone
    when it is read.
    """
    for _ in range(_MAX_TRIES):
        try:
            rows = await write()
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, asyncpg.SerializationError):
                raise
        else:
            if not rows and len(distinct) == len(requests):
                return [CreateResult(Existence.CREATED, request.timer) for request in requests]
            return _answers(requests, await _existing_in_turns(rows))
    raise StoreUnavailable("timers were forgotten as fast as they were created: try again")


async def _existing_in_turns(rows: Sequence[Row]) -> dict[TimerKey, tuple[Timer, bool]]:
    """The timers of the rows by key, and whether each is readable. Decoding hundreds at once would
    make others wait."""
    existing: dict[TimerKey, tuple[Timer, bool]] = {}
    for start in range(0, len(rows), _DECODED_AT_ONCE):
        if start:
            await next_turn()
        for found in map(existing_timer_of, rows[start : start + _DECODED_AT_ONCE]):
            existing[found[0].key] = found
    return existing


def _one_for_each_key(requests: Sequence[CreateRequest]) -> Sequence[CreateRequest]:
    """Merge requests for the same key into one with the same effect: the last replacement, with
    the creation of the first.

    Writing them one after the other would lock keys out of order.
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


def _answers(
    requests: Iterable[CreateRequest], held: dict[TimerKey, tuple[Timer, bool]]
) -> list[CreateResult]:
    """The result of each request, given the timers that existed before, readable or not."""
    results = []
    for request in requests:
        key = request.timer.key
        existing, is_readable = held.get(key, (None, True))
        if existing is None:
            result = CreateResult(Existence.CREATED, request.timer)
        elif request.on_existing is OnExisting.REPLACE and existing.status is TimerStatus.PENDING:
            result = CreateResult(Existence.REPLACED, replaced(existing, request.timer))
        elif is_readable:
            result = CreateResult(Existence.EXISTING, existing)
        else:
            results.append(CreateResult(Existence.UNREADABLE, request.timer))
            continue
        held[key] = (result.timer, True)
        results.append(result)
    return results


def create_values(requests: Sequence[CreateRequest]) -> list[Any]:
    """Values for CREATE."""
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


def new_timer_values(timers: Sequence[Timer], *, look: bool) -> list[Any] | None:
    """Values for CREATE_NEW, with the timers in the order of their keys; None if the timers cannot
    be sent in this form. `look` says whether to search the tables of executing and finished timers.

    The driver spends more time on arrays than on anything else here, so there are few of them.
    """
    namespace, namespaces = _shared_or_each([timer.key.namespace for timer in timers])
    timers = sorted(timers, key=_by_key if namespaces else _by_id)
    if namespaces:
        namespaces = [timer.key.namespace for timer in timers]
    ids = _joined([timer.key.id for timer in timers])
    delivery_ids = _joined([timer.delivery_id for timer in timers])
    callbacks = _joined([callback_text(timer.callback) for timer in timers])
    uuids = b"".join([timer.timer_uuid for timer in timers])
    fingerprints = b"".join([timer.fingerprint or b"" for timer in timers])
    whole = _FIXED_BYTES * len(timers)
    if ids is None or delivery_ids is None or callbacks is None:
        return None
    if len(uuids) != whole or len(fingerprints) not in (0, whole):
        return None
    execute_ats = [timer.execute_at for timer in timers]
    due_ats = [timer.due_at for timer in timers]
    policy, policies = _shared_or_each([timer.retry_policy for timer in timers])
    correlation_ids = _each_or_nothing([timer.correlation_id for timer in timers])
    return [
        look,
        _SEPARATOR,
        ids,
        delivery_ids,
        callbacks,
        uuids,
        fingerprints or None,
        [timer.shard for timer in timers],
        execute_ats,
        due_ats if due_ats != execute_ats else [],
        namespace,
        namespaces,
        *_shared_or_each([timer.created_at for timer in timers]),
        *_shared_or_each([timer.updated_at for timer in timers]),
        retry_policy_text(policy),
        [retry_policy_text(each) for each in policies],
        [metadata_text(each) for each in _each_or_nothing([timer.metadata for timer in timers])],
        [storable_or_none(each) for each in correlation_ids],
        command_orders_of(timers),
    ]


def _joined(texts: list[str]) -> str | None:
    """The texts with separators, or None if they could not be split again."""
    joined = _SEPARATOR.join(texts)
    return joined if joined and joined.count(_SEPARATOR) == len(texts) - 1 else None


def _shared_or_each(values: list[Value]) -> tuple[Value | None, list[Value]]:
    """The value that all share and no list, or None and the list."""
    first = values[0]
    return (first, []) if values.count(first) == len(values) else (None, values)


def _each_or_nothing(values: list[Value | None]) -> list[Value | None]:
    """The values, or no list if all are None."""
    return [] if values.count(None) == len(values) else values
