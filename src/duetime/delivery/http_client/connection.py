"""One connection of one route to one origin, and the exchange under way on it."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Protocol, cast

from duetime.delivery.http_client.answer import AnswerReader, HttpAnswer
from duetime.delivery.http_client.failures import (
    ClientClosed,
    ConnectionLost,
    DeliveryFailure,
    InvalidAnswer,
    StaleConnection,
    TimedOut,
    is_late,
    loss_problem,
)
from duetime.delivery.http_client.route import PoolKey

_NO_LINGER = struct.pack("ii", 1, 0)

_TURNS_BEFORE_GIVING_UP = 2
"""Turns of the loop between the end of the timeout and the failure. uvloop may run both the timers
and the callbacks of a turn before it reads sockets, so only the second turn is sure to follow."""

_READING_SECONDS = 0.5
"""Time to read the rest of an answer that may have arrived before the end of the timeout. With TLS
it takes uvloop several turns to report the end of a connection, which may be that of the answer."""


class ConnectionOwner(Protocol):
    """Where a connection reports that it is new, idle or lost: `ConnectionPool`."""

    stale_seconds: float
    """Time after the request within which the loss of a reused connection means that the peer had
    closed it before. Pauses of this process do not count."""

    def awake_seconds(self, since: float, now: float) -> float:
        """Time between two instants of the loop in which this process ran."""
        ...

    def add(self, connection: "Connection") -> None: ...

    def put(self, connection: "Connection", keep_alive_seconds: int | None) -> None: ...

    def see_off(self, connection: "Connection") -> None: ...

    def remove(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Carries one request and its answer at a time.

    After an answer that leaves the connection clean, the connection puts itself back into the
    pool. After one that announces the end of the connection, the pool sees it off. After anything
    else (a failure, a timeout, an abandoned wait, surplus bytes) it aborts.
    """

    __slots__ = (
        "_deadline",
        "_failure",
        "_pool",
        "_reader",
        "_timeout_seconds",
        "_timer",
        "_transport",
        "_used_before",
        "_waiter",
        "_watched_deadline",
        "expires_at",
        "is_open",
        "key",
        "loop",
    )

    _transport: asyncio.Transport

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        key: PoolKey,
        pool: ConnectionOwner,
        answer_limit_bytes: int,
    ) -> None:
        self.loop = loop
        self.key = key
        self.is_open = False
        self.expires_at = 0.0
        self._pool = pool
        self._reader = AnswerReader(answer_limit_bytes)
        self._waiter: asyncio.Future[HttpAnswer] | None = None
        self._used_before = False
        self._failure: DeliveryFailure | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watched_deadline = 0.0
        self._deadline = 0.0
        self._timeout_seconds = 0.0

    async def exchange(self, request: bytes, deadline: float, timeout_seconds: float) -> HttpAnswer:
        """Send a request and wait for its answer until `deadline` (loop time).

        The connection must have come from `ConnectionPool.take` or be new. Raises
        DeliveryFailure; StaleConnection if the request may be sent again elsewhere. Cancelling
        the wait aborts the connection.
        """
        if not self.is_open:
            raise self._failure or self._loss(None)
        waiter: asyncio.Future[HttpAnswer] = self.loop.create_future()
        self._waiter = waiter
        self._deadline = deadline
        self._timeout_seconds = timeout_seconds
        if self._timer is None or deadline < self._watched_deadline:
            self._watch(deadline)
        # The transport buffers the rest that the socket does not take: one request at most.
        self._transport.write(request)
        try:
            return await waiter
        except BaseException:
            if self._waiter is waiter:
                self._waiter = None
                self.abort()
            raise

    def keep_unused(self) -> None:
        """Leave a new connection to the next request, because its own will not be sent."""
        if self.is_open:
            self._used_before = True
            self._pool.put(self, None)

    def abort(self) -> None:
        """Drop the connection at once. Idempotent."""
        if self.is_open:
            self.is_open = False
            self._transport.abort()

    def reset(self) -> None:
        """Drop the connection with RST instead of FIN, so that its local port is free at once.
        Only for a connection whose peer has answered completely."""
        if self.is_open:
            with suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER
                )
            self.abort()

    def abandon(self) -> None:
        """Drop the connection because the client closes; a waiting request raises ClientClosed."""
        self._fail(ClientClosed())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        self._pool.add(self)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # Bytes without a request: nothing from this peer can be trusted.
            self._fail(InvalidAnswer())
            return
        try:
            complete = self._reader.feed(data)
        except DeliveryFailure as failure:
            self._fail(failure)
            return
        if complete:
            self._finish()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._end(exc)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._reader.release()
        self._pool.remove(self)

    def _finish(self) -> None:
        """Hand the answer to the waiting request, and the connection to the pool."""
        waiter, self._waiter = self._waiter, None
        assert waiter is not None
        if waiter.done():
            # Cancelled in this same turn of the loop.
            self.abort()
            return
        reader = self._reader
        waiter.set_result(reader.answer())
        if not self.is_open:
            return
        if not reader.reusable or self._transport.get_write_buffer_size():
            # Either the peer wants no reuse, or it answered before the request was all sent.
            if reader.asks_to_close and not self._transport.get_write_buffer_size():
                self._pool.see_off(self)
            else:
                self.abort()
            return
        self._used_before = True
        reader.start()
        self._pool.put(self, reader.keep_alive_seconds)

    def _fail(self, failure: DeliveryFailure) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            # A new connection may fail before its first request is written.
            self._failure = self._failure or failure
        elif not waiter.done():
            waiter.set_exception(failure)
        self.abort()

    def _end(self, error: Exception | None) -> None:
        """The peer closed the connection (no error), or it broke."""
        if self._waiter is not None and error is None and self._reader.end():
            self._reader.reusable = self._reader.asks_to_close = False
            self._finish()
        else:
            self._fail(self._loss(error))

    def _loss(self, error: Exception | None) -> ConnectionLost:
        answer_started = self._reader.received_bytes > 0
        problem = loss_problem(error, answer_started)
        if self._used_before and not answer_started:
            # A reused connection needs no opening, so its request is written when its time starts.
            written_at = self._deadline - self._timeout_seconds
            awake_seconds = self._pool.awake_seconds(written_at, self.loop.time())
            if awake_seconds < self._pool.stale_seconds:
                return StaleConnection(problem)
        return ConnectionLost(problem)

    def _watch(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._watched_deadline = deadline
        self._timer = self.loop.call_at(deadline, self._deadline_reached)

    def _deadline_reached(self) -> None:
        # One timer outlives many exchanges: setting and cancelling one per exchange costs more
        # than occasionally finding here that the deadline has moved on.
        self._timer = None
        if self._waiter is None:
            return
        if self._deadline > self._watched_deadline:
            self._watch(self._deadline)
        else:
            self._look_once_more(self._waiter, _TURNS_BEFORE_GIVING_UP)

    def _look_once_more(self, waiter: asyncio.Future[HttpAnswer], turns: int) -> None:
        """Fail the exchange of `waiter`, unless its answer is read within the next turns, or soon
        after them if it has begun, or if this process stood still.

        After a pause of this process the deadline may be long over, while an answer that came in
        time still waits in the socket.
        """
        if self._waiter is not waiter:
            return
        if turns:
            self.loop.call_soon(self._look_once_more, waiter, turns - 1)
        elif self._reader.received_bytes or is_late(self.loop.time(), self._deadline):
            self.loop.call_later(_READING_SECONDS, self._give_up, waiter)
        else:
            self._give_up(waiter)

    def _give_up(self, waiter: asyncio.Future[HttpAnswer]) -> None:
        if self._waiter is waiter:
            self._fail(TimedOut(self._timeout_seconds))
