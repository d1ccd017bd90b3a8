"""The endpoints of this node, and their pauses on all nodes."""

import asyncio
from collections.abc import Callable, Sequence
from heapq import nsmallest

from duetime.background import BackgroundLoop
from duetime.domain.errors import EndpointNotPaused, InvalidInput, TooManyPauses
from duetime.domain.limits import MAX_PAUSE_REASON_CHARACTERS, MAX_PAUSED_ENDPOINTS
from duetime.domain.security.access import Access
from duetime.ports.clock import Clock
from duetime.ports.endpoints import (
    EndpointPause,
    EndpointReporter,
    EndpointState,
    EndpointStatus,
    NodeEndpoints,
    PauseStore,
)
from duetime.service.turns import Turns

REFRESH_SECONDS = 1.0
"""Time for which a pause of one node may go unnoticed on the others."""

MOST_LOOKED_AT = 2_000
"""Endpoints that one search looks at."""

NameOf = Callable[[str], str]
"""The name that the engine has for an endpoint, however it is written. Raises `InvalidInput`."""


class Endpoints:
    """A pause or a resume holds on this node when the call returns, and on all others within two
    seconds. While the store is away, a node keeps to the pauses that it saw last."""

    def __init__(
        self,
        store: PauseStore,
        reporter: EndpointReporter,
        clock: Clock,
        turns: Turns,
        name_of: NameOf,
    ) -> None:
        self._store = store
        self._reporter = reporter
        self._clock = clock
        self._turns = turns
        self._name_of = name_of
        self._reading = asyncio.Lock()
        self._seen: Sequence[EndpointPause] | None = None

    async def look(self) -> NodeEndpoints:
        """All endpoints: the paused ones first, then those with an open breaker, then those that
        fail, by name."""
        names = sorted(self._reporter.endpoint_names())
        return NodeEndpoints(self._reporter.node, await self._in_order(names))

    async def look_at_few(self, most: int, find: str = "") -> NodeEndpoints:
        """The first of these, whose names contain `find`. If there are very many, only some are
        looked at."""
        names = self._reporter.endpoint_names()
        if find:
            found = sorted(name for name in names if find in name)
            shown = (await self._in_order(found[:MOST_LOOKED_AT]))[:most]
            return NodeEndpoints(self._reporter.node, shown, len(found) - len(shown))
        chosen = {status.endpoint for status in self._reporter.troubled_endpoints(most)}
        calm = (name for name in names if name not in chosen)
        chosen.update(nsmallest(most - len(chosen), calm))
        shown = await self._in_order(sorted(chosen))
        return NodeEndpoints(self._reporter.node, shown, len(names) - len(shown))

    @property
    def paused(self) -> int:
        """The number of paused endpoints."""
        return len(self._seen or ())

    async def _in_order(self, names: Sequence[str]) -> list[EndpointStatus]:
        statuses = await self._turns.map(self._reporter.status_of, names)
        return sorted(statuses, key=_rank)

    async def pause(self, endpoint: str, reason: str | None, access: Access) -> EndpointPause:
        """Let nothing be sent to the endpoint until it is resumed. If it is paused already, that
        pause stays as it is, and is returned. Raises `InvalidInput`, `TooManyPauses` and
        `StoreUnavailable`."""
        pause = EndpointPause(
            endpoint=self._name_of(endpoint),
            paused_at=self._clock.now(),
            paused_by=access.name,
            reason=_checked_reason(reason),
        )
        existing = await self._store.pauses()
        if len(existing) >= MAX_PAUSED_ENDPOINTS and pause.endpoint not in map(_name, existing):
            raise TooManyPauses(MAX_PAUSED_ENDPOINTS)
        await self._store.add_pause(pause)
        pauses = {each.endpoint: each for each in await self.refresh()}
        # Another node may have resumed it a moment ago.
        return pauses.get(pause.endpoint, pause)

    async def resume(self, endpoint: str) -> str:
        """Let timers of the endpoint go out again, those that wait at once; returns its name.
        Raises `InvalidInput`, `EndpointNotPaused` and `StoreUnavailable`."""
        name = self._name_of(endpoint)
        was_paused = await self._store.remove_pause(name)
        await self.refresh()
        if not was_paused:
            raise EndpointNotPaused(name)
        return name

    async def refresh(self) -> Sequence[EndpointPause]:
        """Let the engine know the pauses that the store has now, and return them. Raises
        `StoreUnavailable`."""
        async with self._reading:
            pauses = await self._store.pauses()
            if pauses != self._seen:
                self._reporter.set_pauses({each.endpoint: each for each in pauses})
                self._seen = pauses
            return pauses


class PauseWatch(BackgroundLoop):
    """Sees the pauses of other nodes, where several share a store."""

    name = "pause-watch"

    def __init__(self, endpoints: Endpoints, clock: Clock) -> None:
        super().__init__(clock)
        self._endpoints = endpoints

    async def refresh(self) -> None:
        """Let the engine know the pauses. Raises `StoreUnavailable`."""
        await self._endpoints.refresh()

    async def step(self) -> None:
        await self.wait(REFRESH_SECONDS)
        await self.refresh()


def _name(pause: EndpointPause) -> str:
    return pause.endpoint


def _rank(status: EndpointStatus) -> int:
    """Trouble first. Sorting keeps the order of the names."""
    if status.pause is not None:
        return 0
    if status.state is not EndpointState.CLOSED:
        return 1
    return 2 if status.consecutive_failures else 3


def _checked_reason(reason: str | None) -> str | None:
    if reason is None or not reason.strip():
        return None
    if len(reason) > MAX_PAUSE_REASON_CHARACTERS:
        raise InvalidInput("reason", f"is longer than {MAX_PAUSE_REASON_CHARACTERS} characters")
    if any(not character.isprintable() for character in reason):
        raise InvalidInput("reason", "has a line break or another character that cannot be shown")
    return reason.strip()
