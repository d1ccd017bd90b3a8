"""Closing a connection without losing the last answer on the way."""

import asyncio

SILENCE_SECONDS = 2.0
"""Time without input after which the client is taken to have stopped sending."""

MAX_SECONDS = 30.0
"""Time that a client has to stop sending."""

MAX_BYTES = 64 * 2**20
"""Input that is read and discarded."""


class LingeringClose:
    """The end of a connection whose client may still be sending.

    A socket that is closed with unread input resets the connection, and a client that is still
    sending sees the reset instead of the answer. So the sending side is closed first. Input is
    discarded until the client closes its side, is silent for a while, or has had its chance.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._discarded_bytes = 0
        self._seen_bytes = 0
        self.began_at = loop.time()
        self._until = self.began_at + MAX_SECONDS
        transport.write_eof()
        self._timer = loop.call_later(SILENCE_SECONDS, self._check)

    def discard(self, data: bytes) -> None:
        self._discarded_bytes += len(data)
        if self._discarded_bytes > MAX_BYTES:
            self._transport.abort()

    def hurry(self) -> None:
        """The server stops: the client has one more period of silence."""
        self._until = min(self._until, self._loop.time() + SILENCE_SECONDS)

    def ended(self) -> None:
        """The connection is closed."""
        self._timer.cancel()

    def _check(self) -> None:
        left_seconds = self._until - self._loop.time()
        if left_seconds <= 0:
            self._transport.abort()
            return
        is_silent = self._discarded_bytes == self._seen_bytes
        # Closing waits for ever for a client that does not read, but aborting does not.
        if is_silent and not self._transport.get_write_buffer_size():
            self._transport.close()
            return
        self._seen_bytes = self._discarded_bytes
        self._timer = self._loop.call_later(min(SILENCE_SECONDS, left_seconds), self._check)
