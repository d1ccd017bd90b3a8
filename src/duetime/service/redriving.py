"""Redriving: failed timers become pending again, one by one or all that match a filter."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.errors import StoreUnavailable, TimerNotFailed, TimerNotFound
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Redrive
from duetime.ports.clock import Clock
from duetime.ports.store import Position, ScanQuery, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import new_uuid7

BATCH_SIZE = 500


class RedriveFilter(Struct, frozen=True, kw_only=True):
    """Matches failed timers of a namespace by a range of instants and a text in the error."""

    scan: ScanQuery
    error_contains: str | None = None


class Redriving:
    """Makes failed timers pending again, as new firings that are due at once."""

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        wakeups: WakeUps,
        namespaces: Namespaces,
        *,
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._new_uuid = new_uuid

    async def redrive(self, key: TimerKey) -> Timer:
        """Raises `NamespaceNotFound`, `TimerNotFound`, `TimerNotFailed`."""
        await self._namespaces.named(key.namespace)
        (timer,) = await self._redrive([key])
        if timer is None:
            await self.check(key)
            (timer,) = await self._redrive([key])
        if timer is None:
            raise StoreUnavailable(f"timer {key.id!r} changes too fast to be redriven: try again")
        return timer

    async def check(self, key: TimerKey) -> None:
        """Raises the reason why the timer cannot be redriven, if there is one."""
        await self._namespaces.named(key.namespace)
        timer = await self._store.get(key)
        if timer is None:
            raise TimerNotFound(key)
        if timer.status is not TimerStatus.FAILED:
            raise TimerNotFailed(timer.status)

    async def count(self, matching: RedriveFilter) -> int:
        await self._namespaces.named(matching.scan.namespace)
        if matching.error_contains is None:
            return await self._store.count_scan(_failed(matching.scan))
        count = 0
        query: ScanQuery | None = _failed(matching.scan)
        while query is not None:
            timers = await self._store.scan(query)
            count += sum(_matches(timer, matching) for timer in timers)
            query = _next_query(query, timers)
        return count

    async def redrive_all(self, matching: RedriveFilter) -> int:
        """Redrive every timer that matches, in batches, and return the number. A timer that fails
        again meanwhile is not redriven twice: the scan has passed it."""
        await self._namespaces.named(matching.scan.namespace)
        redriven = 0
        query: ScanQuery | None = _failed(matching.scan)
        while query is not None:
            timers = await self._store.scan(query)
            keys = [timer.key for timer in timers if _matches(timer, matching)]
            redriven += sum(timer is not None for timer in await self._redrive(keys))
            query = _next_query(query, timers)
        return redriven

    async def _redrive(self, keys: list[TimerKey]) -> list[Timer | None]:
        if not keys:
            return []
        redrives = [Redrive(key=key, delivery_id=self._new_uuid()) for key in keys]
        timers = await self._store.redrive_if_failed(redrives, self._clock.now())
        for timer in timers:
            if timer is not None:
                self._wakeups.announce(timer.shard, timer.due_at)
        return timers


def _failed(scan: ScanQuery) -> ScanQuery:
    return replace(scan, status=TimerStatus.FAILED, after_exclusive=None, limit=BATCH_SIZE)


def _matches(timer: Timer, matching: RedriveFilter) -> bool:
    text = matching.error_contains
    return text is None or text in (timer.last_error or "")


def _next_query(query: ScanQuery, timers: list[Timer]) -> ScanQuery | None:
    """The query for the timers after these; None when there are no more."""
    if len(timers) < query.limit:
        return None
    last = timers[-1]
    return replace(query, after_exclusive=Position(last.execute_at, last.timer_uuid))
