"""All open connections, and which of them are idle."""

import asyncio

from duetime.delivery.http_client.connection import Connection
from duetime.delivery.http_client.failures import ClientClosed

DISTRUST_SECONDS = 10.0
"""Time for which no connection is kept to an origin that closed one without notice."""


class ConnectionPool:
    """Keeps idle connections by origin; the one used last is used first.

    This order lets surplus connections expire when the load falls. A connection serves one
    request at a time, and is never taken after its expiry.
    """

    def __init__(self, max_idle_seconds: float, stale_seconds: float) -> None:
        self.stale_seconds = stale_seconds
        self._max_idle_seconds = max_idle_seconds
        self._idle: dict[str, list[Connection]] = {}
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0
        self._all_lost: asyncio.Future[None] | None = None
        self._closed = False
        self._distrusted: dict[str, float] = {}

    def check_open(self) -> None:
        """Raise ClientClosed if the pool accepts no connections any more."""
        if self._closed:
            raise ClientClosed

    def refuse(self) -> None:
        """Accept no connection from now on, neither new nor used."""
        self._closed = True

    def add(self, connection: Connection) -> None:
        """Register a new connection, which is busy from the start."""
        self._open.add(connection)
        if self._closed:
            connection.abandon()

    def remove(self, connection: Connection) -> None:
        """Forget a connection that was lost."""
        self._open.discard(connection)
        if not self._open and self._all_lost is not None and not self._all_lost.done():
            self._all_lost.set_result(None)

    def take(self, origin: str, now: float) -> Connection | None:
        """An idle connection that is open and has not expired by `now` (loop time), if any."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.is_open and connection.expires_at > now:
                return connection
            connection.abort()
        return None

    def distrust(self, origin: str, now: float) -> None:
        """Keep no connection to an origin for a while: its peer closed one without notice.

        Some peers do so after every answer. If it was chance, distrust costs little.
        """
        self._distrusted = {each: until for each, until in self._distrusted.items() if until > now}
        self._distrusted[origin] = now + DISTRUST_SECONDS
        for connection in self._idle.pop(origin, []):
            connection.abort()

    def put(self, connection: Connection, keep_alive_seconds: int | None) -> None:
        """Make a connection idle that has just completed an exchange.

        The connection expires after `max_idle_seconds`, or a second before the peer would close
        it.
        """
        idle_seconds = self._max_idle_seconds
        if keep_alive_seconds is not None:
            idle_seconds = min(idle_seconds, keep_alive_seconds - 1)
        loop = connection.loop
        now = loop.time()
        distrusted = self._distrusted and self._distrusted.get(connection.origin, 0.0) > now
        if self._closed or idle_seconds <= 0 or distrusted:
            connection.abort()
            return
        connection.expires_at = expires_at = now + idle_seconds
        idle = self._idle.get(connection.origin)
        if idle is None:
            self._idle[connection.origin] = [connection]
        else:
            idle.append(connection)
        if self._sweep is None or expires_at < self._sweep_at:
            self._schedule_sweep(loop, expires_at)

    async def close(self) -> None:
        """Abort every connection, busy or idle, and wait until they are gone."""
        self.refuse()
        if self._sweep is not None:
            self._sweep.cancel()
        self._idle.clear()
        for connection in list(self._open):
            connection.abandon()
        if self._open:
            if self._all_lost is None or self._all_lost.done():
                self._all_lost = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._all_lost)

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = at
        self._sweep = loop.call_at(at, self._drop_expired, loop)

    def _drop_expired(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = None
        # The loop may call a millisecond early.
        now = loop.time() + 0.001
        kept: dict[str, list[Connection]] = {}
        for origin, connections in self._idle.items():
            fresh = [each for each in connections if each.is_open and each.expires_at > now]
            for connection in connections:
                if connection.expires_at <= now:
                    connection.abort()
            if fresh:
                kept[origin] = fresh
        self._idle = kept
        if kept:
            earliest = min(each.expires_at for fresh in kept.values() for each in fresh)
            self._schedule_sweep(loop, earliest)
