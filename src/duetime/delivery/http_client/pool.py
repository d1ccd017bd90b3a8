"""All open connections, and which of them are idle."""

import asyncio

from duetime.delivery.http_client.address_race import SpareTry
from duetime.delivery.http_client.connection import Connection
from duetime.delivery.http_client.failures import ClientClosed
from duetime.delivery.http_client.route import PoolKey
from duetime.pauses import PULSE_SECONDS, Pauses

DISTRUST_SECONDS = 10.0
"""Time for which no connection is kept to an origin that closed one without notice."""

FAREWELL_SECONDS = 0.5
"""Time for a peer to close a connection whose end it announced. Its FIN comes right behind the
answer, if it comes at all."""

SHORTEST_PAUSE_SECONDS = 2 * PULSE_SECONDS
"""Time without a pulse from which this process counts as paused."""


class ConnectionPool:
    """Keeps idle connections by route and origin; the one used last is used first.

    This order lets surplus connections expire when the load falls. A connection serves one
    request at a time, and is never taken after its expiry.

    A request has a place of its own for the connection that it uses or opens. No more than
    `max_open` sockets are open because of others: if there are as many, departing and idle
    connections, and tries of further addresses, give way to requests. So do departing and idle
    connections to further addresses.
    """

    def __init__(self, max_idle_seconds: float, stale_seconds: float, max_open: int) -> None:
        self.stale_seconds = stale_seconds
        self._max_idle_seconds = max_idle_seconds
        self._max_open = max_open
        self._departing: dict[Connection, None] = {}
        self._farewell: asyncio.TimerHandle | None = None
        self._idle: dict[PoolKey, list[Connection]] = {}
        self._open: set[Connection] = set()
        self._opening = 0
        self._spare_tries: dict[SpareTry, None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0
        self._pauses = Pauses(SHORTEST_PAUSE_SECONDS)
        self._pulse: asyncio.TimerHandle | None = None
        self._all_lost: asyncio.Future[None] | None = None
        self._closed = False
        self._distrusted: dict[PoolKey, float] = {}

    def check_open(self) -> None:
        """Raise ClientClosed if the pool accepts no connections any more."""
        if self._closed:
            raise ClientClosed

    @property
    def is_closed(self) -> bool:
        return self._closed

    def refuse(self) -> None:
        """Accept no connection from now on, neither new nor used."""
        self._closed = True

    def add(self, connection: Connection) -> None:
        """Register a new connection, which is busy from the start."""
        self._open.add(connection)
        if self._pulse is None:
            self._pauses.begin(connection.loop.time())
            self._show_pulse(connection.loop)
        if self._closed:
            connection.abandon()

    def remove(self, connection: Connection) -> None:
        """Forget a connection that was lost."""
        self._open.discard(connection)
        self._departing.pop(connection, None)
        if not self._open and self._pulse is not None:
            self._pulse.cancel()
            self._pulse = None
        if not self._open and self._all_lost is not None and not self._all_lost.done():
            self._all_lost.set_result(None)

    def awake_seconds(self, since: float, now: float) -> float:
        """Implements `ConnectionOwner`."""
        return self._pauses.awake_seconds(since, now)

    def take(self, key: PoolKey, now: float) -> Connection | None:
        """An idle connection that is open and has not expired by `now` (loop time), if any."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if connection.is_open and connection.expires_at > now:
                return connection
            connection.abort()
        return None

    def distrust(self, key: PoolKey, now: float) -> None:
        """Keep no connection to an origin for a while: its peer closed one without notice.

        Some peers do so after every answer. If it was chance, distrust costs little.
        """
        self._distrusted = {each: until for each, until in self._distrusted.items() if until > now}
        self._distrusted[key] = now + DISTRUST_SECONDS
        for connection in self._idle.pop(key, []):
            self.see_off(connection)

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
        distrusted = self._distrusted and self._distrusted.get(connection.key, 0.0) > now
        if self._closed or idle_seconds <= 0 or distrusted:
            self.see_off(connection)
            return
        connection.expires_at = expires_at = now + idle_seconds
        idle = self._idle.get(connection.key)
        if idle is None:
            self._idle[connection.key] = [connection]
        else:
            idle.append(connection)
        if self._sweep is None or expires_at < self._sweep_at:
            self._schedule_sweep(loop, expires_at)

    def see_off(self, connection: Connection) -> None:
        """Let the peer close a connection first, as it announced or is likely to, and reset the
        connection if it does not.

        The side that closes first keeps the port for a minute (TIME_WAIT), and our ports towards
        one endpoint are some 28,000. A reset at once would keep none either. But some systems
        then drop what the peer has received and not read yet, and a peer may answer before it has
        read the whole request. Half a second later only a peer that has stalled has not.
        """
        if self._closed:
            connection.abort()
            return
        connection.expires_at = connection.loop.time() + FAREWELL_SECONDS
        self._departing[connection] = None
        if self._farewell is None:
            self._watch_departing(connection.loop, connection.expires_at)

    def begin_opening(self) -> None:
        """Take a place for one more connection."""
        surplus = self._surplus()
        self._opening += 1
        while surplus > 0:
            if self._spare_tries and not self._departing:
                self._spare_tries.popitem()[0].give_up()
            elif not self._close_unneeded():
                return
            surplus -= 1

    def end_opening(self) -> None:
        """The connection is open, or will not be."""
        self._opening -= 1

    def has_room(self) -> bool:
        """Implements `Room`."""
        surplus = self._surplus()
        while surplus > 0 and self._close_unneeded():
            surplus -= 1
        return surplus <= 0

    def add_spare(self, spare: SpareTry) -> None:
        """Implements `Room`."""
        self._spare_tries[spare] = None

    def remove_spare(self, spare: SpareTry) -> None:
        """Implements `Room`."""
        self._spare_tries.pop(spare, None)

    def _surplus(self) -> int:
        """The sockets that have to go before one more may be opened."""
        return len(self._open) + self._opening + len(self._spare_tries) + 1 - self._max_open

    def _close_unneeded(self) -> bool:
        """Close a connection that nobody needs, if there is one."""
        if self._departing:
            connection = next(iter(self._departing))
            del self._departing[connection]
            connection.reset()
            return True
        idle = self._take_any_idle()
        if idle is not None:
            idle.abort()
        return idle is not None

    async def close(self) -> None:
        """Abort every connection, busy or idle, and wait until they are gone."""
        self.refuse()
        if self._sweep is not None:
            self._sweep.cancel()
        if self._farewell is not None:
            self._farewell.cancel()
        self._idle.clear()
        for connection in list(self._open):
            connection.abandon()
        if self._open:
            if self._all_lost is None or self._all_lost.done():
                self._all_lost = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._all_lost)

    def _show_pulse(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pauses.pulse(loop.time())
        self._pulse = loop.call_later(PULSE_SECONDS, self._show_pulse, loop)

    def _take_any_idle(self) -> Connection | None:
        """The connection used longest ago of some origin."""
        while self._idle:
            key, connections = next(iter(self._idle.items()))
            if connections:
                return connections.pop(0)
            del self._idle[key]
        return None

    def _watch_departing(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self._farewell = loop.call_at(at, self._reset_departing, loop)

    def _reset_departing(self, loop: asyncio.AbstractEventLoop) -> None:
        self._farewell = None
        # The loop may call a millisecond early.
        now = loop.time() + 0.001
        for connection in list(self._departing):
            if connection.expires_at > now:
                self._watch_departing(loop, connection.expires_at)
                return
            del self._departing[connection]
            connection.reset()

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = at
        self._sweep = loop.call_at(at, self._drop_expired, loop)

    def _drop_expired(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = None
        # The loop may call a millisecond early.
        now = loop.time() + 0.001
        kept: dict[PoolKey, list[Connection]] = {}
        for key, connections in self._idle.items():
            fresh = [each for each in connections if each.is_open and each.expires_at > now]
            for connection in connections:
                if connection.expires_at <= now:
                    connection.abort()
            if fresh:
                kept[key] = fresh
        self._idle = kept
        if kept:
            earliest = min(each.expires_at for fresh in kept.values() for each in fresh)
            self._schedule_sweep(loop, earliest)
