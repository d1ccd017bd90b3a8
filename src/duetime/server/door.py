"""The places for connections to the API, and who gets one when all are taken."""

import asyncio
import re

import structlog

from duetime.descriptors import DescriptorBudget
from duetime.server.answer_bytes import last_answer_bytes
from duetime.server.connection_limits import ConnectionLimits
from duetime.server.http_protocol import Refusing
from duetime.server.places import Occupant, PeerPlaces, Places
from duetime.telemetry.current_work import request_id_of

_log = structlog.get_logger()

SURPLUS_SECONDS = 2.0
"""Time that a connection which gets no place has for its request, to be told so, and then for the
rest of the request."""

REMIND_SECONDS = 60.0
"""Time between two log lines about a lack of places."""

_REQUEST_ID = re.compile(rb"\r\nx-request-id:[ \t]*([^\r\n]+?)[ \t]*\r\n", re.IGNORECASE)
_FULL = "too many connections: try again in a moment"

_PEER_ADVICE = (
    "look at this peer, which has most of the places: if it is a load balancer, let it limit each "
    "client; if not, it may be an attack"
)
_FILES_ADVICE = "raise the limit of open files (ulimit -n, or LimitNOFILE of the service)"


def api_door(budget: DescriptorBudget) -> "Door":
    """The door of the API."""
    return Door(
        ConnectionLimits(max_connections=budget.api_connections, max_surplus=budget.api_surplus)
    )


def metrics_door() -> "Door":
    """The door of the metrics' own port. Its descriptors are in the reserve."""
    limits = ConnectionLimits(max_connections=8, max_surplus=4, head_seconds=5.0)
    return Door(limits, is_logged=False)


class Door:
    """The places for connections.

    When all are taken, a new connection gets the place of one of the peer that has most of them:
    of the oldest one that has not sent a request; otherwise of one that has not been used for a
    while. While no peer has more than half of the places, that may also be one of another peer. A
    peer with more than half gives way with connections in use, too, to peers that have less than
    half as many as itself. Otherwise the new one is told to come back later, but probes are
    answered.

    So connections in use live on, silent or slow ones keep nobody out, and one peer cannot keep
    the others out at all. Behind a load balancer, where all clients are one peer, nothing in use
    gives way.
    """

    def __init__(self, limits: ConnectionLimits, *, is_logged: bool = True) -> None:
        """`is_logged` says whether a lack of places is."""
        self.limits = limits
        self._is_logged = is_logged
        self._all = Places()
        self._peers = PeerPlaces()
        self._surplus: dict[SurplusProtocol, None] = {}
        self._remind_seconds = 0.0
        self.closed = 0
        """Connections that were closed in favour of others, since the start."""
        self.turned_away = 0
        """Connections that got no place, since the start."""

    @property
    def connections(self) -> int:
        """Connections that have a place."""
        return len(self._all)

    def admit(self, protocol: Occupant, now: float) -> bool:
        """Give the connection a place, if there is one."""
        if len(self._all) >= self.limits.max_connections:
            given_up = self._find_to_close(self._peers.of(protocol.peer), now)
            self._log_full(now)
            if given_up is None:
                self.turned_away += 1
                return False
            self.closed += 1
            self.leave(given_up)
            given_up.transport.abort()
        self._all.add(protocol)
        self._peers.add(protocol)
        return True

    def leave(self, protocol: Occupant) -> None:
        self._all.remove(protocol)
        self._peers.remove(protocol)

    def turn_away(self, transport: asyncio.Transport, app: Refusing) -> None:
        """Answer the first request of a connection without a place."""
        if len(self._surplus) >= self.limits.max_surplus:
            next(iter(self._surplus)).end()
        transport.set_protocol(SurplusProtocol(transport, app, self._surplus))

    def _find_to_close(self, own: Places, now: float) -> Occupant | None:
        """`own` are the places of the new connection's peer."""
        _, greediest = self._peers.greediest()
        unused = greediest.find_unused(now)
        if unused is not None:
            return unused
        if not self._holds_most(greediest):
            return self._all.find_unused(now)
        if len(own) * 2 < len(greediest):
            return greediest.find_any(now)
        return own.find_unused(now)

    def _holds_most(self, places: Places) -> bool:
        return len(places) * 2 > self.limits.max_connections

    def _log_full(self, now: float) -> None:
        if self._is_logged and now >= self._remind_seconds:
            self._remind_seconds = now + REMIND_SECONDS
            peer, places = self._peers.greediest()
            _log.warning(
                "api.connections_full",
                max_connections=self.limits.max_connections,
                closed=self.closed,
                turned_away=self.turned_away,
                peer=peer,
                peer_connections=len(places),
                advice=_PEER_ADVICE if self._holds_most(places) else _FILES_ADVICE,
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
            given = _REQUEST_ID.search(data)
            request_id = request_id_of(None if given is None else given[1])
            self._answering = self._loop.create_task(self._answer(method, target, request_id))

    async def _answer(self, method: bytes, target: bytes, request_id: bytes) -> None:
        answer = await self._app.overload(target, _FULL)
        if self._transport.is_closing():
            return
        self._transport.write(last_answer_bytes(answer, (), request_id, method))
        self._transport.write_eof()
        self._timer = self._loop.call_later(SURPLUS_SECONDS, self.end)

    def end(self) -> None:
        self._surplus.pop(self, None)
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._surplus.pop(self, None)
