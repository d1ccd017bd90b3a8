"""The limit to a namespace's unfinished timers, `max_pending`, and what is left of it."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from duetime.domain.errors import DuetimeError, TimerUnreadable, TooManyTimers
from duetime.domain.keys import TimerKey
from duetime.ports.clock import Clock
from duetime.ports.store import CreateRequest, CreateResult, Existence, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.create_batcher import CreateBatcher
from duetime.service.namespaces import Namespaces

OutcomeT = TypeVar("OutcomeT")

COUNT_SECONDS = 1.0
"""Age of a count at which the timers of a namespace are counted again."""

COUNTED_EXACTLY = 10_000
"""Timers of a namespace up to which every count is exact."""

MOST_COUNTED = 1_000_000
"""Timers that are counted exactly before a create is refused. For larger limits the store's
estimate decides."""

EXACT_COUNTS_AT_ONCE = 2
"""Exact counts of large namespaces that are under way together: they use connections that creates
and changes wait for."""

PAUSE_FACTOR = 10
"""Time that a count is used for, in multiples of the time that it took, if that is more than
COUNT_SECONDS. So counting a namespace keeps the store busy for a tenth of the time at most."""

LOOKED_UP_AT_ONCE = 32
"""Timers that are looked up side by side, to tell repeats from new ones."""

MOST_COUNTS = 10_000
"""Namespaces whose counts are remembered."""


class PendingLimits:
    """Refuses the creates that a namespace has no room for.

    Room is the limit, less the timers that the store had pending or executing when they were last
    counted, less those created here since or under way. So the creates of one node never exceed the
    limit, as far as the store counts exactly; room that becomes free shows with the next count.
    Where the store estimates, a create is refused only after an exact count, up to `MOST_COUNTED`;
    an estimate that is too low admits too many. A create that repeats or replaces an existing timer
    needs no room. Creates in namespaces without a limit cost nothing.
    """

    def __init__(self, store: TimerStore, clock: Clock, namespaces: Namespaces) -> None:
        self._store = store
        self._clock = clock
        self._namespaces = namespaces
        self._counts: dict[str, _Count] = {}
        self._exact_counts = asyncio.Semaphore(EXACT_COUNTS_AT_ONCE)

    def limit_of(self, namespace: str) -> int | None:
        known = self._namespaces.known(namespace)
        return None if known is None else known.options.max_pending

    @asynccontextmanager
    async def admission(self, requests: Sequence[CreateRequest]) -> AsyncIterator["Admission"]:
        """Admit the requests that there is room for, the first ones first. The block writes those
        that were not refused. Raises `StoreUnavailable`."""
        admission = Admission()
        try:
            for namespace, indexes in self._limited(requests).items():
                await self._admit(admission, namespace, indexes, requests)
            yield admission
        finally:
            admission.close()

    def _limited(self, requests: Sequence[CreateRequest]) -> dict[str, list[int]]:
        """Indexes of the requests for unfinished timers, by namespaces that have a limit."""
        names = {request.timer.key.namespace for request in requests}
        limited: dict[str, list[int]] = {
            name: [] for name in names if self.limit_of(name) is not None
        }
        if limited:
            for index, timer in enumerate(request.timer for request in requests):
                if timer.key.namespace in limited and not timer.status.is_finished:
                    limited[timer.key.namespace].append(index)
        return limited

    async def _admit(
        self,
        admission: "Admission",
        namespace: str,
        indexes: list[int],
        requests: Sequence[CreateRequest],
    ) -> None:
        count = await self._recent_count(namespace, len(indexes))
        new = indexes
        if not self._has_room(namespace, count, len(indexes)):
            new = await self._without_existing(indexes, requests)
        # From here on nothing waits, so nobody else takes the room meanwhile.
        limit = self.limit_of(namespace)
        room = len(new) if limit is None else max(0, limit - count.used)
        # A repeat of a refused request would create what that one may not.
        refused_keys = {requests[index].timer.key for index in new[room:]}
        for index in indexes if refused_keys else ():
            if requests[index].timer.key in refused_keys:
                admission.refused[index] = TooManyTimers(namespace, limit or 0)
        admission.take(namespace, count, min(room, len(new)))

    def _has_room(self, namespace: str, count: "_Count", timers: int) -> bool:
        limit = self.limit_of(namespace)
        return limit is None or count.used + timers <= limit

    async def _recent_count(self, namespace: str, timers: int) -> "_Count":
        """A count that is exact enough to refuse some of so many new timers."""
        count = self._counts.get(namespace)
        if count is None:
            if len(self._counts) >= MOST_COUNTS:
                self._counts = {name: each for name, each in self._counts.items() if each.in_use}
            count = self._counts[namespace] = _Count()
        if self._clock.monotonic() >= count.old_at_seconds:
            await count.read_once(partial(self._read, namespace, count, COUNTED_EXACTLY))
        while not self._has_room(namespace, count, timers):
            # The limit may change meanwhile.
            exact_up_to = min(self.limit_of(namespace) or 0, MOST_COUNTED)
            if count.is_exact_up_to(exact_up_to):
                break
            await count.read_once(partial(self._read_exactly, namespace, count, exact_up_to))
        return count

    async def _read_exactly(self, namespace: str, count: "_Count", exact_up_to: int) -> None:
        async with self._exact_counts:
            await self._read(namespace, count, exact_up_to)

    async def _read(self, namespace: str, count: "_Count", exact_up_to: int) -> None:
        start_seconds, created = self._clock.monotonic(), count.created
        count.stored = await self._store.count_unfinished(namespace, exact_up_to=exact_up_to)
        count.exact_up_to = exact_up_to
        # The store has counted these. It may have counted some of those under way as well: until
        # the next count they are taken for more.
        count.created -= created
        took_seconds = self._clock.monotonic() - start_seconds
        count.old_at_seconds = start_seconds + max(COUNT_SECONDS, PAUSE_FACTOR * took_seconds)

    async def _without_existing(
        self, indexes: Iterable[int], requests: Sequence[CreateRequest]
    ) -> list[int]:
        """The indexes of requests that would create a timer."""
        first_with = {requests[index].timer.key: index for index in reversed([*indexes])}
        keys = [key for key, index in first_with.items() if not requests[index].id_is_new]
        for start in range(0, len(keys), LOOKED_UP_AT_ONCE):
            some = keys[start : start + LOOKED_UP_AT_ONCE]
            exist = await asyncio.gather(*map(self._exists, some))
            for key, exists in zip(some, exist, strict=True):
                if exists:
                    del first_with[key]
        return sorted(first_with.values())

    async def _exists(self, key: TimerKey) -> bool:
        try:
            return await self._store.get(key) is not None
        except TimerUnreadable:
            return True


class Admission:
    """Requests that were admitted together. `refused` has the others, by index."""

    def __init__(self) -> None:
        self.refused: dict[int, TooManyTimers] = {}
        self._taken: dict[str, tuple[_Count, int]] = {}

    def take(self, namespace: str, count: "_Count", timers: int) -> None:
        count.under_way += timers
        self._taken[namespace] = (count, timers)

    def settle(self, results: Iterable[CreateResult]) -> None:
        """Give back the room of requests that created nothing."""
        created = dict.fromkeys(self._taken, 0)
        for existence, timer in ((each.existence, each.timer) for each in results):
            if existence is Existence.CREATED and timer.key.namespace in created:
                created[timer.key.namespace] += not timer.status.is_finished
        for namespace, timers in created.items():
            count, taken = self._taken.pop(namespace)
            count.under_way -= taken
            count.created += timers

    def with_refused(self, others: Sequence[OutcomeT]) -> list[OutcomeT | DuetimeError]:
        """The outcomes of all requests, in order. `others` are of those that were admitted."""
        rest = iter(others)
        count = len(self.refused) + len(others)
        return [self.refused[i] if i in self.refused else next(rest) for i in range(count)]

    def close(self) -> None:
        """Take all that was not settled for created: a write that failed may have taken place."""
        for count, taken in self._taken.values():
            count.under_way -= taken
            count.created += taken


class LimitedCreates:
    """The creates of the APIs: those of `batcher`, within `limits`."""

    def __init__(
        self, store: TimerStore, clock: Clock, wakeups: WakeUps, namespaces: Namespaces
    ) -> None:
        self.batcher = CreateBatcher(store, wakeups)
        self.limits = PendingLimits(store, clock, namespaces)
        self._tasks: set[asyncio.Task[CreateResult]] = set()

    def create(self, request: CreateRequest) -> "asyncio.Future[CreateResult]":
        """As `CreateBatcher.create`; the future may also have `TooManyTimers`."""
        if self.limits.limit_of(request.timer.key.namespace) is None:
            return self.batcher.create(request)
        task = asyncio.get_running_loop().create_task(self._create_if_room(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A request whose caller has gone is written all the same, so it keeps its room.
        return asyncio.shield(task)

    async def create_all(
        self, requests: Sequence[CreateRequest]
    ) -> list[CreateResult | DuetimeError]:
        """As `CreateBatcher.create_all`; an entry may also be `TooManyTimers`."""
        async with self.limits.admission(requests) as admission:
            refused = admission.refused
            admitted = [each for index, each in enumerate(requests) if index not in refused]
            results = await self.batcher.create_all(admitted)
            admission.settle(results)
        return admission.with_refused(results)

    async def _create_if_room(self, request: CreateRequest) -> CreateResult:
        async with self.limits.admission([request]) as admission:
            if admission.refused:
                raise admission.refused[0]
            result = await self.batcher.create(request)
            admission.settle([result])
            return result


class _Count:
    """The unfinished timers of a namespace: `stored` when they were last counted, `created` here
    since, and those of requests `under_way`. A larger number than `exact_up_to` is estimated."""

    def __init__(self) -> None:
        self._reading: asyncio.Task[None] | None = None
        self.old_at_seconds = -math.inf
        self.stored = 0
        self.exact_up_to = 0
        self.created = 0
        self.under_way = 0

    @property
    def used(self) -> int:
        return self.stored + self.created + self.under_way

    @property
    def in_use(self) -> bool:
        return bool(self.under_way or self._reading)

    def is_exact_up_to(self, timers: int) -> bool:
        return self.stored <= self.exact_up_to or self.exact_up_to >= timers

    async def read_once(self, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Read, or wait for the read that is under way, whichever it is. If it fails, it fails for
        all that wait. Whoever gives up waiting leaves it to the others."""
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(read())
            self._reading.add_done_callback(self._end_reading)
        await asyncio.shield(self._reading)

    def _end_reading(self, _: asyncio.Task[None]) -> None:
        self._reading = None
