"""An application on the bus: sends commands and records events."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from uuid_utils import uuid7

from duetime.clock import SystemClock
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, format_instant, parse_instant

PATIENCE_SECONDS = 30.0
TENANT = "acme"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A message for `timer.commands`. The broker recognizes repeats by `id`."""

    id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """A message of the events channel. `place` is the broker's own id of it: an event stored twice
    has two places, an event only handed over twice has one."""

    place: str
    envelope: Json
    arrived_at: Instant

    @property
    def call(self) -> str:
        return str(self.envelope["payload"]["serviceCallId"])

    @property
    def id(self) -> str:
        return str(self.envelope["id"])

    @property
    def reached_at(self) -> Instant:
        return parse_instant(self.envelope["payload"]["reachedAt"])


def cancel_timer(call: str, *, tenant: str = TENANT) -> Command:
    envelope = {
        "id": str(uuid7()),
        "type": "CancelTimer",
        "tenantId": tenant,
        "timestampMs": SystemClock().now() // MICROSECONDS_PER_MS,
        "payload": {"tenantId": tenant, "serviceCallId": call},
    }
    return Command(str(envelope["id"]), json.dumps(envelope).encode())


def schedule_timer(
    call: str,
    due_at: Instant,
    *,
    tenant: str = TENANT,
    correlation_id: str | None = None,
    payload: object = None,
) -> Command:
    envelope = {
        "id": str(uuid7()),
        "type": "ScheduleTimer",
        "tenantId": tenant,
        "aggregateId": call,
        "timestampMs": SystemClock().now() // MICROSECONDS_PER_MS,
        "payload": {"tenantId": tenant, "serviceCallId": call, "dueAt": format_instant(due_at)},
    }
    if correlation_id is not None:
        envelope["correlationId"] = correlation_id
    if payload is not None:
        envelope["payload"]["payload"] = payload  # type: ignore[index]
    return Command(str(envelope["id"]), json.dumps(envelope).encode())


class EventBook:
    """The events received, each place once, in order of arrival. If the task that reads them fails,
    waiting callers fail, too."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._places: set[str] = set()
        self._arrival = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def start_reading(self, read: Coroutine[None, None, None]) -> None:
        self._reading = asyncio.create_task(read)
        self._reading.add_done_callback(lambda _: self._arrival.set())

    async def stop_reading(self) -> None:
        # A broker's library may swallow a cancellation, so it is repeated.
        while self._reading is not None and not self._reading.done():
            self._reading.cancel()
            await asyncio.wait({self._reading}, timeout=0.1)

    def enter(self, place: str, data: bytes) -> None:
        if place not in self._places:
            self._places.add(place)
            self.events.append(Event(place, json.loads(data), SystemClock().now()))
            self._arrival.set()

    def of(self, call: str) -> list[Event]:
        return [event for event in self.events if event.call == call]

    def times_by_call(self) -> Counter[str]:
        return Counter(event.call for event in self.events)

    async def wait_for(
        self, count: int, matches: Callable[[Event], bool] = lambda event: True
    ) -> list[Event]:
        """All matching events, once there are at least `count`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                matching = [event for event in self.events if matches(event)]
                if len(matching) >= count:
                    return matching
                await self._next()

    async def wait_for_total(self, count: int) -> None:
        """Fast even among thousands of events."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.events) < count:
                await self._next()

    async def wait_for_calls(self, calls: Iterable[str]) -> None:
        """Wait until each of the calls is announced."""
        missing, seen = set(calls), 0
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    missing -= {event.call for event in self.events[seen:]}
                    seen = len(self.events)
                    if not missing:
                        return
                    await self._next()
        except TimeoutError:
            raise AssertionError(
                f"{len(missing)} were never announced: {sorted(missing)[:5]}"
            ) from None

    async def _next(self) -> None:
        self._arrival.clear()
        if self._reading is not None and self._reading.done():
            self._reading.result()
        await self._arrival.wait()


class BusClient(Protocol):
    """Records events from the first one of the channel on, across restarts of the broker."""

    @property
    def book(self) -> EventBook: ...

    async def send(self, commands: Sequence[Command]) -> None:
        """Return when the broker has stored all of them, each once, however often it was away."""
        ...

    async def rejections(self) -> list[Json]:
        """All rejections so far."""
        ...

    async def unacknowledged(self) -> int:
        """Number of commands that the broker still holds for the service."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
