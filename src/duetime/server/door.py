"""The places for connections to the API, and who gets one when all are taken."""

import asyncio
from typing import Protocol

import structlog

from duetime.server.answer_bytes import last_answer_bytes
from duetime.server.connection_limits import ConnectionLimits
from duetime.server.http_protocol import Refusing

_log = structlog.get_logger()

MOST_EXAMINED = 32
"""Connections that are examined for one that can be closed in favour of a new one."""

SURPLUS_SECONDS = 2.0
"""Time that a connection which gets no place has for its request, to be told so, and then for the
rest of the request."""

REMIND_SECONDS = 60.0
"""Time between two log lines about a lack of places."""

_FULL = "too many connections: try again in a moment"


class Occupant(Protocol):
    """A connection with a place."""

    @property
    def transport(self) -> asyncio.Transport: ...

    @property
    def has_sent_no_request(self) -> bool: ...

    def is_unused(self, now: float) -> bool:
        """Whether the connection may be closed in favour of a new one, at that time of the loop."""
        ...


class Door:
    """The places for connections, in the order of their arrival.

    When all are taken, a new connection gets the place of the oldest one that has not sent a
    request; otherwise of one that has not been used for a while. If there is none, the new one is
    told to come back later, but probes are answered. So connections in use live on, and silent or
    slow ones keep nobody out.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._silent: dict[Occupant, None] = {}
        self._known: dict[Occupant, None] = {}
        """Connections that have sent a request, those examined longest ago first."""
        self._surplus: dict[SurplusProtocol, None] = {}
        self._remind_seconds = 0.0
        self.closed = 0
        """Connections that were closed in favour of others, since the start."""
        self.turned_away = 0
        """Connections that got no place, since the start."""

    def admit(self, protocol: Occupant, now: float) -> bool:
        """Give the connection a place, if there is one."""
        if len(self._silent) + len(self._known) >= self.limits.max_connections:
            unused = self._find_unused(now)
            self._log_full(now)
            if unused is None:
                self.turned_away += 1
                return False
            self.closed += 1
            self.leave(unused)
            unused.transport.abort()
        self._silent[protocol] = None
        return True

    def leave(self, protocol: Occupant) -> None:
        self._silent.pop(protocol, None)
        self._known.pop(protocol, None)

    def turn_away(self, transport: asyncio.Transport, app: Refusing) -> None:
        """Answer the first request of a connection without a place."""
        if len(self._surplus) >= self.limits.max_surplus:
            next(iter(self._surplus)).end()
        transport.set_protocol(SurplusProtocol(transport, app, self._surplus))

    def _find_unused(self, now: float) -> Occupant | None:
        while self._silent:
            oldest = next(iter(self._silent))
            if oldest.has_sent_no_request:
                return oldest
            del self._silent[oldest]
            self._known[oldest] = None
        for _ in range(min(MOST_EXAMINED, len(self._known))):
            first = next(iter(self._known))
            if first.is_unused(now):
                return first
            del self._known[first]
            self._known[first] = None
        return None

    def _log_full(self, now: float) -> None:
        if now >= self._remind_seconds:
            self._remind_seconds = now + REMIND_SECONDS
            _log.warning(
                "api.connections_full",
                max_connections=self.limits.max_connections,
                closed=self.closed,
                turned_away=self.turned_away,
                advice="raise the limit of open files (ulimit -n, or LimitNOFILE of the service)",
            )


class SurplusProtocol(asyncio.Protocol):
    """A connection that is told to come back later, once its request has come, unless it probes.
    The rest of the request is read and discarded: closing resets a connection whose client is still
    sending, and the answer might be lost."""

    def __init__(
        self,
        transport: asyncio.Transport,
        app: Refusing,
        surplus: "dict[SurplusProtocol, None]",
    ) -> None:
        self._transport = transport
        self._app = app
        self._surplus = surplus
        surplus[self] = None
        self._loop = asyncio.get_running_loop()
        self._answering: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(SURPLUS_SECONDS, self.end)

    def data_received(self, data: bytes) -> None:
        if self._answering is None:
            method, target, *_ = [*data.split(b" ", 2), b""]
            self._timer.cancel()
            self._answering = self._loop.create_task(self._answer(method, target))

    async def _answer(self, method: bytes, target: bytes) -> None:
        answer = await self._app.overload(target, _FULL)
        if self._transport.is_closing():
            return
        self._transport.write(last_answer_bytes(answer, (), method))
        self._transport.write_eof()
        self._timer = self._loop.call_later(SURPLUS_SECONDS, self.end)

    def end(self) -> None:
        self._surplus.pop(self, None)
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._surplus.pop(self, None)
