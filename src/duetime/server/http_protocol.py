"""HTTP on the wire: uvicorn's protocol with limits, and without protocol upgrades.

It overrides private parts of uvicorn, so pyproject.toml bounds the version of uvicorn.
"""

from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from duetime.api.platform.envelope import Code, answer
from duetime.domain.limits import MAX_HEAD_BYTES

_UPGRADE_HEADERS = frozenset({b"upgrade", b"http2-settings", b"connection"})


class BoundedHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, bounded.

    - The head of a request has a size limit. The parser buffers a header until its end, so bytes
      are counted until they form a head or a piece of a body; too many end the connection.
    - A request that cannot be parsed is answered in Duetime's own error format.
    - An offer to upgrade the protocol is ignored, and the request is served as HTTP/1.1.
    - Nothing more is read from a client that does not read its answers.
    - When a client disconnects, all of its queued requests are marked as disconnected.
    """

    _unread_bytes = 0
    _incoming_bytes = 0
    _head_is_too_large = False
    _head_to_replay: bytes | None = None
    _started_cycle: Any = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._incoming_bytes = self._unread_bytes + len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            if not self.transport.is_closing():
                self._refuse()
            return
        self._unread_bytes = self._incoming_bytes
        if self._unread_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._head_is_too_large = True
            self._refuse()

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            # The last answer closed the connection, so pipelined requests are not read.
            raise httptools.HttpParserError
        # Most requests arrive in one small piece, whose headers need no counting.
        if self._incoming_bytes > MAX_HEAD_BYTES:
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > MAX_HEAD_BYTES:
                self._head_is_too_large = True
                raise httptools.HttpParserError
        self._incoming_bytes = 0
        if self.parser.should_upgrade():
            self._head_to_replay = self._head_without_upgrade()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._incoming_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._head_to_replay is None:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Uvicorn resumes reading after every answer, even while requests are queued.
        if self.pipeline and not self.transport.is_closing():
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        # Uvicorn marks only the latest request.
        for cycle in [self._started_cycle, *(queued for queued, _ in self.pipeline)]:
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._started_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def _feed(self, data: bytes) -> None:
        """Parse the data. The parser stops after a head that offers an upgrade; a new parser then
        reads the same head without the offer, and continues."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            head, self._head_to_replay = self._head_to_replay, None
            if head is None:
                # Only CONNECT stops the parser without an offer to remove.
                raise httptools.HttpParserError from None
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._feed(head + data[upgrade.args[0] :])

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        for name, value in self.headers:
            if name not in _UPGRADE_HEADERS:
                lines.append(b"%b: %b" % (name, value))
            elif name == b"connection" and b"close" in value.lower():
                lines.append(b"connection: close")
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _refuse(self) -> None:
        if self._head_is_too_large:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            message = f"the head of the request must be at most {MAX_HEAD_BYTES} bytes"
        else:
            status, message = HTTPStatus.BAD_REQUEST, "this is not a valid HTTP/1.1 request"
        content = answer(status, Code.VALIDATION, message, None).content
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(content)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()
