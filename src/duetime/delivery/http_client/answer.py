"""HTTP answers, and the reader that parses them from the bytes of a connection."""

import re

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from duetime.delivery.http_client.failures import InvalidAnswer

HEAD_LIMIT_BYTES = 65_536
"""Size of an answer's status line and headers."""

_KEEP_ALIVE_TIMEOUT = re.compile(rb"(?:^|[\s,;])timeout\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_BODILESS = frozenset({204, 304})


class HttpAnswer(msgspec.Struct, frozen=True, gc=False):
    """The peer's answer, whatever its status: a redirect is an answer, too."""

    status: int
    retry_after: str | None
    """The value of `Retry-After`, as it was sent."""
    body: bytes
    """The body, cut to the size that the client keeps."""
    body_truncated: bool
    """Whether the body was cut."""
    location: bytes | None = None
    """The value of `Location`, as it was sent."""


class AnswerReader:
    """Reads the answers of one connection, one after the other.

    `start`, then `feed` until it returns True (or `end`), then `answer`. The `on_` methods are
    called by the parser.
    """

    __slots__ = (
        "_body",
        "_chunked",
        "_complete",
        "_content_length",
        "_framing_limit_bytes",
        "_limit_bytes",
        "_location",
        "_parser",
        "_retry_after",
        "_status",
        "_truncated",
        "asks_to_close",
        "keep_alive_seconds",
        "received_bytes",
        "reusable",
    )

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        # A body in chunks of one byte takes six times its size. More than this is not body but
        # endless trailers or chunk extensions, which the parser would accumulate.
        self._framing_limit_bytes = 2 * HEAD_LIMIT_BYTES + 8 * limit_bytes
        self.keep_alive_seconds: int | None = None
        self.start()
        self._parser = HttpResponseParser(self)

    def start(self) -> None:
        """Expect a new answer."""
        self.received_bytes = 0
        self.reusable = False
        self.asks_to_close = False
        """The peer will close the connection after this answer."""
        self._status = 0
        self._retry_after: bytes | None = None
        self._location: bytes | None = None
        self._content_length: bytes | None = None
        self._chunked = False
        self._body: bytes | bytearray = b""
        self._truncated = False
        self._complete = False

    def feed(self, data: bytes) -> bool:
        """Read the next bytes; True once the answer is complete. Raises InvalidAnswer.

        Bytes beyond the end of the answer make the connection not `reusable`.
        """
        self.received_bytes += len(data)
        try:
            if self.received_bytes > HEAD_LIMIT_BYTES:
                self._feed_within_limits(data)
            else:
                self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.reusable = False
            if not self._complete:
                raise InvalidAnswer from None
        return self._complete

    def end(self) -> bool:
        """The peer closed the connection; True if that completes the answer."""
        delimited = self._chunked or self._content_length is not None
        return self._status != 0 and not delimited

    def answer(self) -> HttpAnswer:
        """The answer that `feed` or `end` completed."""
        retry_after = self._retry_after
        return HttpAnswer(
            self._status,
            None if retry_after is None else retry_after.decode("latin-1"),
            bytes(self._body),
            self._truncated,
            self._location,
        )

    def release(self) -> None:
        """Let go of the parser, which refers back to this reader. Nothing may follow."""
        del self._parser

    def _feed_within_limits(self, data: bytes) -> None:
        before = self.received_bytes - len(data)
        if not self._status:
            head_share = HEAD_LIMIT_BYTES - before
            self._parser.feed_data(data[:head_share])
            data = data[head_share:]
        if not self._status or before > self._framing_limit_bytes:
            raise HttpParserError
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        if self._complete:
            # An answer without a request: the next request must not take it for its own.
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._status:
            return  # A trailer, or a header of a surplus answer.
        length = len(name)  # Compared first: a lower-case copy of every name costs more.
        if length == 14:
            if name.lower() == b"content-length":
                self._content_length = value
        elif length == 17:
            if name.lower() == b"transfer-encoding":
                self._chunked = b"chunked" in value.lower()
        elif length == 11:
            if name.lower() == b"retry-after":
                self._retry_after = value
        elif length == 10:
            if name.lower() == b"keep-alive":
                match = _KEEP_ALIVE_TIMEOUT.search(value)
                self.keep_alive_seconds = int(match[1]) if match else None
        elif length == 8 and name.lower() == b"location":
            self._location = value

    def on_headers_complete(self) -> None:
        if self._status:
            return
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101 or status < 100:
                raise InvalidAnswer
            self._retry_after = self._location = self._content_length = None
            self._chunked = False
            return
        self._status = status
        self.reusable = self._parser.should_keep_alive()
        self.asks_to_close = not self.reusable
        if status in _BODILESS and (self._chunked or self._content_length not in (None, b"0")):
            # Some servers wrongly send the body that they announce here.
            self.reusable = False

    def on_body(self, piece: bytes) -> None:
        if self._complete:
            return
        if not self._body:
            self._body = piece
        else:
            # Not a list: pieces of two bytes would take nearly thirty times their size.
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += piece
        if len(self._body) > self._limit_bytes:
            self._body = self._body[: self._limit_bytes]
            self._truncated = self._complete = True
            # The peer may go on sending for long.
            self.reusable = self.asks_to_close = False

    def on_message_complete(self) -> None:
        if self._status:
            self._complete = True
