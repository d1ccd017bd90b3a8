"""The protocol of one connection, with a place at the door and limits to its client's slowness."""

import asyncio
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, NamedTuple

from duetime.api.http.body_budget import BodyShare
from duetime.server.connection_limits import ConnectionLimits
from duetime.server.door import Door
from duetime.server.fast_create import FastCreateProtocol
from duetime.server.http_protocol import Problem
from duetime.server.places import UNUSED_SECONDS, peer_of

TURNS_BEFORE_THE_END = 2
"""Turns of the loop between the end of a limit and the end of the connection. Some loops run timers
and callbacks before they read sockets, so only the second turn is sure to follow reading."""

_TOO_SLOW = Problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the memory for bodies is short, and this one takes too long: try again later",
)


class _Part(Enum):
    """A part of the input that a client has yet to send."""

    HEAD = auto()
    BODY = auto()
    REST = auto()
    """The part of a body that is missing when its request has been answered."""
    NEXT = auto()
    """The next request, which need not come."""


class _Awaited(NamedTuple):
    """The input that we wait for. It is equal as long as the wait goes on: for a body that is its
    next piece, otherwise the whole part."""

    part: _Part
    request: object
    """For a head and for the next request, the one before it."""
    pieces: int = 0

    def limit_seconds(self, limits: ConnectionLimits) -> float:
        match self.part:
            case _Part.HEAD:
                return limits.head_seconds
            case _Part.BODY:
                return limits.body_pause_seconds
            case _Part.REST:
                return limits.rest_seconds
            case _Part.NEXT:
                return limits.idle_seconds


class _Body(NamedTuple):
    """A body that arrives. `returned_bytes` of it were worked off."""

    request: object
    arrived_bytes: int
    returned_bytes: int


class GuardedProtocol(FastCreateProtocol):
    """The server's protocol with a place at the door, and limits to the client's patience.

    Every few seconds it is looked at, so that a request costs no timer of its own. A client that
    lets us wait for the rest of a request gets a 408.
    """

    def __init__(self, *args: Any, door: Door, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._door = door
        self.peer = ""
        self._look_timer: asyncio.TimerHandle | None = None
        self._waits_for: _Awaited | None = None
        self._looks_waited = 0
        self._body: _Body | None = None
        self._looks_received = 0
        self._slow: object = None
        """The request whose body was slow between the last two looks."""
        self._unread_answer_bytes = 0
        self._is_read_slowly = False
        self._looks_unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.peer = peer_of(transport)
        if not self._door.admit(self, self.loop.time()):
            self._door.turn_away(transport, self.app)
            return
        self.bodies = self.body_budget.of_peer(self.peer)
        super().connection_made(transport)
        self._waits_for = self._awaited()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.leave(self)
        if self._look_timer is not None:
            self._look_timer.cancel()
        super().connection_lost(exc)

    @property
    def has_sent_no_request(self) -> bool:
        return self.cycle is None

    def is_unused(self, now: float) -> bool:
        """Nothing is under way, and nothing was for a while. A body or an answer that the client
        is slow with does not count, nor does a head or the rest of an answered request that is not
        complete after a while."""
        if self._lingering is not None:
            return now >= self._lingering.began_at + UNUSED_SECONDS
        if self._is_read_slowly and self.transport.get_write_buffer_size():
            return True
        awaited = self._awaited()
        if awaited is None:
            return False
        match awaited.part:
            case _Part.NEXT:
                return now >= self._answered_at + UNUSED_SECONDS
            case _Part.BODY:
                return self._slow is awaited.request
            case _Part.HEAD | _Part.REST:
                return self._looks_waited > 0 and awaited == self._waits_for

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
            limit_seconds = awaited.limit_seconds(limits)
            if self._looks_waited >= limits.looks_within(limit_seconds):
                self._end_waiting(awaited, limit_seconds, TURNS_BEFORE_THE_END)
        self._look_at_body(limits)
        self._look_at_answer(limits)
        self._look_later()

    def _look_at_body(self, limits: ConnectionLimits) -> None:
        before, body = self._body, self._arriving_body()
        self._body, self._slow = body, None
        if before is None or body is None or before.request is not body.request:
            self._looks_received = 0
            return
        if body.arrived_bytes - before.arrived_bytes < limits.slow_bytes:
            self._slow = body.request
        if body.returned_bytes != before.returned_bytes:
            self._looks_received = 0
            return
        self._looks_received += 1
        enough = limits.looks_within(limits.body_seconds_when_short)
        if self.bodies.is_short and self._looks_received >= enough:
            self.refuse(_TOO_SLOW)

    def _look_at_answer(self, limits: ConnectionLimits) -> None:
        before_bytes = self._unread_answer_bytes
        unread_bytes = self._unread_answer_bytes = self.transport.get_write_buffer_size()
        self._is_read_slowly = bool(unread_bytes) and (
            0 <= before_bytes - unread_bytes < limits.slow_bytes
        )
        if unread_bytes != before_bytes or not unread_bytes:
            self._looks_unread = 0
            return
        self._looks_unread += 1
        if self._looks_unread >= limits.looks_within(limits.answer_pause_seconds):
            self.transport.abort()

    def _arriving_body(self) -> _Body | None:
        """The body that the client is sending; None if it sends none."""
        if not self._is_in_message or self.is_closing or self.flow.read_paused:
            return None
        request: Any = self.cycle
        share: BodyShare | None = getattr(request, "body_share", None)
        if share is None:
            return _Body(request, len(request.body), 0)
        return _Body(request, share.arrived_bytes, share.returned_bytes)

    def _awaited(self) -> _Awaited | None:
        """The input that we wait for; None if we wait for none."""
        if self.is_closing or self.flow.read_paused:
            return None
        request: Any = self.cycle
        if self._is_in_message:
            if request.response_complete:
                return _Awaited(_Part.REST, request)
            return _Awaited(_Part.BODY, request, self._pieces)
        if request is not None and not request.response_complete:
            return None
        is_next = request is not None and not self._is_in_head
        return _Awaited(_Part.NEXT if is_next else _Part.HEAD, request)

    def _end_waiting(self, awaited: _Awaited, seconds: float, turns: int) -> None:
        """End the connection, unless the input is read within the next turns of the loop: after a
        pause of this process it may have been in the socket for long."""
        if self._awaited() != awaited:
            return
        if turns:
            self.loop.call_soon(self._end_waiting, awaited, seconds, turns - 1)
            return
        if not self._pieces or awaited.part is _Part.NEXT:
            # There is nobody to be told. Browsers open connections in advance.
            self.transport.close()
            return
        if awaited.part is _Part.REST:
            # The client has had its answer for long, and a limit of time to read it.
            self.transport.abort()
            return
        message = f"the head of the request did not arrive within {seconds:g} s"
        if awaited.part is _Part.BODY:
            message = f"no part of the request's body arrived for {seconds:g} s"
        self.refuse(Problem(HTTPStatus.REQUEST_TIMEOUT, message))
