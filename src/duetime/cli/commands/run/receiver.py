"""A small HTTP server that receives callbacks and passes each one on to be shown."""

import asyncio
import socket
from http import HTTPStatus
from typing import Protocol, cast

import httptools

from duetime.cli.commands.run.signature_check import SignatureCheck
from duetime.cli.output.received_callback import ReceivedCallback, Signature
from duetime.domain.instants import Instant
from duetime.ports.clock import Clock

MAX_HEADER_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_CONNECTIONS = 2_000


class OnCallback(Protocol):
    def __call__(self, callback: ReceivedCallback, /) -> None: ...


class Receiver:
    """Passes every request to `on_callback`, then answers it with the given status.

    The body of a 200 is `{"ok":true}`, which completes timers of both APIs. A request that does not
    pass the check of signatures, if there is one, is answered with 401.
    """

    def __init__(
        self,
        clock: Clock,
        on_callback: OnCallback,
        status: int = 200,
        signatures: SignatureCheck | None = None,
    ) -> None:
        self.clock = clock
        self.on_callback = on_callback
        self.signatures = signatures
        self.answer_status = status
        self.answer_body = b'{"ok":true}' if status == HTTPStatus.OK else b""
        self.answer = _answer(status, self.answer_body)
        self.connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), sock=listener)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for transport in list(self.connections):
                transport.abort()
            await self._server.wait_closed()


class _Connection(asyncio.Protocol):
    """One connection. The parser calls the `on_...` methods."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: asyncio.Transport
        self._callback = ReceivedCallback(Instant(0))
        self._target = b""
        self._body: list[bytes] = []
        self._header_bytes = 0
        self._body_bytes = 0
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._receiver.connections.add(self._transport)
        if len(self._receiver.connections) > MAX_CONNECTIONS:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._receiver.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._transport.is_closing():
                self._refuse(HTTPStatus.BAD_REQUEST)

    def on_message_begin(self) -> None:
        self._callback = ReceivedCallback(self._receiver.clock.now())
        self._target = b""
        self._body = []
        self._header_bytes = self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._count_header_bytes(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._callback.headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._count_header_bytes(len(name) + len(value))

    def on_headers_complete(self) -> None:
        if self._callback.headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MAX_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._transport.is_closing():
            return
        callback = self._callback
        callback.method = self._parser.get_method().decode("latin-1")
        callback.target = self._target.decode("latin-1")
        callback.body = b"".join(self._body)
        receiver = self._receiver
        answer = receiver.answer
        callback.answer_status = receiver.answer_status
        callback.answer_body = receiver.answer_body
        if receiver.signatures is not None:
            problem = receiver.signatures.problem(
                callback.headers, callback.body, callback.arrived_at
            )
            callback.signature = Signature(problem)
            if problem is not None:
                callback.answer_status, callback.answer_body = HTTPStatus.UNAUTHORIZED, b""
                answer = _REFUSED
        receiver.on_callback(callback)
        self._transport.write(answer)
        if not self._parser.should_keep_alive():
            self._transport.close()

    def _count_header_bytes(self, count: int) -> None:
        self._header_bytes += count
        if self._header_bytes > MAX_HEADER_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _refuse(self, status: HTTPStatus) -> None:
        if not self._transport.is_closing():
            self._transport.write(_answer(status, b"", close=True))
            self._transport.close()


def _answer(status: int, body: bytes, close: bool = False) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {status} {phrase}"]
    if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        lines.append(f"Content-Length: {len(body)}")
    if body:
        lines.append("Content-Type: application/json")
    if close:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


_REFUSED = _answer(HTTPStatus.UNAUTHORIZED, b"")
