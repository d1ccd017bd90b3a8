"""HTTP on the wire: what no parser can read, and heads without end, refused in our own format."""

from http import HTTPStatus

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duetime.api.answers import answer
from duetime.api.errors import Code

MAX_HEAD_BYTES = 65_536


class BoundedHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, but the head of a request has a limit, and what cannot be read is
    answered in the platform's format.

    The parser keeps a header until it has seen its end. So bytes are counted until they make
    up a head or a piece of a body, and too many of them end the connection.
    """

    _unread_bytes = 0
    _incoming_bytes = 0
    _head_is_too_large = False

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._incoming_bytes = self._unread_bytes + len(data)
        super().data_received(data)
        self._unread_bytes = self._incoming_bytes
        if self._unread_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._head_is_too_large = True
            self.send_400_response("")

    def on_headers_complete(self) -> None:
        # Most requests come in one small piece, which needs no second look.
        if self._incoming_bytes > MAX_HEAD_BYTES:
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > MAX_HEAD_BYTES:
                self._head_is_too_large = True
                raise httptools.HttpParserError
        self._incoming_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._incoming_bytes = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
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
