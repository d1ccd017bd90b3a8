"""Connections to the API: how many there may be, and how long a client may keep one waiting."""

import asyncio
import math
from http import HTTPStatus
from typing import Any

import structlog
from msgspec import Struct

from duetime.api.http.body_budget import BodyShare
from duetime.server.answer_bytes import answer_bytes
from duetime.server.fast_create import FastCreateProtocol
from duetime.server.http_protocol import Problem, Refusing

_log = structlog.get_logger()

LOOKS_PER_LIMIT = 4
"""Looks at a connection in the time of its shortest limit."""

TURNS_BEFORE_THE_END = 2
"""Turns of the loop between the end of a limit and the end of the connection. Some loops run timers
and callbacks before they read sockets, so only the second turn is sure to follow reading."""

MOST_EXAMINED = 32
"""Connections that are examined for one that can be closed in favour of a new one."""

UNUSED_SECONDS = 1.0
"""Time since its last answer after which a connection can be closed in favour of a new one."""

SURPLUS_SECONDS = 2.0
"""Time that a connection which gets no place has for its request, to be told so, and then for the
rest of the request."""

REMIND_SECONDS = 60.0
"""Time between two log lines about a lack of places."""

_TOO_SLOW = Problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the memory for bodies is short, and this one takes too long: try again later",
)
_FULL = "too many connections: try again in a moment"


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """`max_connections` is the number of places. A client has `head_seconds` for the head of a
    request, however slowly its bytes come. A body may take any time, but not pause for
    `body_pause_seconds`. While the memory for bodies is short, a body that has been under way for
    `body_seconds_when_short` makes room for others. The reading of an answer may not pause for
    `answer_pause_seconds`."""

    max_connections: int
    head_seconds: float = 20.0
    body_pause_seconds: float = 60.0
    body_seconds_when_short: float = 60.0
    answer_pause_seconds: float = 60.0

    @property
    def look_seconds(self) -> float:
        shortest = min(
            self.head_seconds,
            self.body_pause_seconds,
            self.body_seconds_when_short,
            self.answer_pause_seconds,
        )
        return shortest / LOOKS_PER_LIMIT

    def looks_within(self, seconds: float) -> int:
        return math.ceil(seconds / self.look_seconds)


class Door:
    """The places for connections, in the order of their arrival.

    When all are taken, a new connection gets the place of the oldest one that has not sent a
    request; otherwise of one that has not been used for a while. If there is none, the new one is
    told to come back later. So connections in use live on, and silent ones keep nobody out.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._silent: dict[GuardedProtocol, None] = {}
        self._known: dict[GuardedProtocol, None] = {}
        """Connections that have sent a request, those examined longest ago first."""
        self._surplus: dict[SurplusProtocol, None] = {}
        self._remind_seconds = 0.0
        self.closed = 0
        """Connections that were closed in favour of others, since the start."""
        self.turned_away = 0
        """Connections that got no place, since the start."""

    def admit(self, protocol: "GuardedProtocol") -> bool:
        """Give the connection a place, if there is one."""
        if len(self._silent) + len(self._known) >= self.limits.max_connections:
            now = protocol.loop.time()
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

    def leave(self, protocol: "GuardedProtocol") -> None:
        self._silent.pop(protocol, None)
        self._known.pop(protocol, None)

    def turn_away(self, transport: asyncio.Transport, app: Refusing) -> None:
        """Answer 503 to the first request of a connection without a place."""
        if len(self._surplus) >= max(1, self.limits.max_connections // 8):
            answered = next((each for each in self._surplus if each.is_answered), None)
            if answered is None:
                transport.set_protocol(asyncio.Protocol())
                transport.abort()
                return
            answered.end()
        transport.set_protocol(SurplusProtocol(transport, app, self._surplus))

    def _find_unused(self, now: float) -> "GuardedProtocol | None":
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
    """A connection that is told to come back later, once its request has come. The rest of the
    request is read and discarded: closing resets a connection whose client is still sending, and
    the answer might be lost."""

    is_answered = False

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
        self._timer = self._loop.call_later(SURPLUS_SECONDS, self.end)

    def data_received(self, data: bytes) -> None:
        if self.is_answered:
            return
        self.is_answered = True
        target = [*data.split(b" ", 2), b""][1]
        answer = self._app.overload(target, _FULL)
        self._transport.write(answer_bytes(answer, (), keep_alive=False))
        self._transport.write_eof()
        self._timer.cancel()
        self._timer = self._loop.call_later(SURPLUS_SECONDS, self.end)

    def end(self) -> None:
        self._surplus.pop(self, None)
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._surplus.pop(self, None)


class GuardedProtocol(FastCreateProtocol):
    """The server's protocol with a place at the door, and limits to the client's patience.

    Every few seconds it is looked at, so that a request costs no timer of its own. A client that
    lets us wait for the rest of a request gets a 408.
    """

    pieces = 0
    """Pieces of input so far."""

    def __init__(self, *args: Any, door: Door, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._door = door
        self._look_timer: asyncio.TimerHandle | None = None
        self._waits_for: object = None
        self._receives: object = None
        self._looks_received = 0
        self._looks_waited = 0
        self._unread_answer_bytes = 0
        self._looks_unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not self._door.admit(self):
            self._door.turn_away(transport, self.app)
            return
        super().connection_made(transport)
        self._waits_for = self._awaited()
        self._look_later()

    def data_received(self, data: bytes) -> None:
        self.pieces += 1
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.leave(self)
        if self._look_timer is not None:
            self._look_timer.cancel()
        super().connection_lost(exc)

    @property
    def has_sent_no_request(self) -> bool:
        return self.cycle is None

    def is_unused(self, now: float) -> bool:
        """No request is under way, neither its input nor its answer, and none was for a while. The
        head of a request is no input as long as it is not complete after a while."""
        expiry = self.timeout_keep_alive_task
        if expiry is None:
            return self._looks_waited > 0 and self._is_awaiting_head()
        return now >= expiry.when() - self.timeout_keep_alive + UNUSED_SECONDS

    def _is_awaiting_head(self) -> bool:
        return not self._is_in_message and self._awaited() == self._waits_for is not None

    def _look_later(self) -> None:
        self._look_timer = self.loop.call_later(self._door.limits.look_seconds, self._look)

    def _look(self) -> None:
        # Looks are counted, not seconds: a pause of this process is one look, however long.
        limits = self._door.limits
        awaited = self._awaited()
        if awaited != self._waits_for:
            self._waits_for, self._looks_waited = awaited, 0
        elif awaited is not None:
            self._looks_waited += 1
            limit = limits.body_pause_seconds if self._is_in_message else limits.head_seconds
            if self._looks_waited >= limits.looks_within(limit):
                self._end_waiting(awaited, limit, TURNS_BEFORE_THE_END)
        self._look_at_body(limits)
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread_answer_bytes or not unread:
            self._unread_answer_bytes, self._looks_unread = unread, 0
        else:
            self._looks_unread += 1
            if self._looks_unread >= limits.looks_within(limits.answer_pause_seconds):
                self.transport.abort()
        self._look_later()

    def _look_at_body(self, limits: ConnectionLimits) -> None:
        received = self._body_progress()
        if received is None or received != self._receives:
            self._receives, self._looks_received = received, 0
            return
        self._looks_received += 1
        enough = limits.looks_within(limits.body_seconds_when_short)
        if self.bodies.is_short and self._looks_received >= enough:
            self.refuse(_TOO_SLOW)

    def _body_progress(self) -> object:
        """The body that the client is sending, and how much of it was worked off; None if the
        client sends none."""
        if not self._is_in_message or self.is_closing or self.flow.read_paused:
            return None
        share: BodyShare | None = getattr(self.cycle, "body_share", None)
        return self.cycle, None if share is None else share.returned_bytes

    def _awaited(self) -> object:
        """The input that the client owes us; None if it owes none. It is equal as long as the wait
        goes on: for a head that is the whole head, for a body its next piece."""
        if self.is_closing or self.flow.read_paused:
            return None
        if self._is_in_message:
            return "body", self.pieces
        answered: Any = self.cycle
        is_idle = self.timeout_keep_alive_task is not None
        if answered is None or (answered.response_complete and not is_idle):
            return "head", id(answered)
        return None

    def _end_waiting(self, awaited: object, seconds: float, turns: int) -> None:
        """End the connection, unless the input is read within the next turns of the loop: after a
        pause of this process it may have been in the socket for long."""
        if self._awaited() != awaited:
            return
        if turns:
            self.loop.call_soon(self._end_waiting, awaited, seconds, turns - 1)
            return
        if not self.pieces:
            # Browsers open connections in advance. There is nobody to be told.
            self.transport.close()
            return
        message = f"the head of the request did not arrive within {seconds:g} s"
        if self._is_in_message:
            message = f"no part of the request's body arrived for {seconds:g} s"
        self.refuse(Problem(HTTPStatus.REQUEST_TIMEOUT, message))
