"""The part of NATS's protocol that the publisher and the listener need.

Both share two cores with the server under test; a client library would cost too much CPU.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

HOST = "127.0.0.1"
LINE_END = b"\r\n"
HELLO = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n'

OnMessages = Callable[[Sequence[bytes], int], None]
"""Takes the bodies of messages that arrived together, and the wall clock in nanoseconds."""


class WireBroken(Exception):
    """The server closed the connection or answered with an error."""


class Wire(asyncio.Protocol):
    def __init__(self, on_messages: OnMessages) -> None:
        self._on_messages = on_messages
        self._unread = b""
        self._pong: asyncio.Future[None] | None = None
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection has failed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(HELLO)

    def subscribe(self, subject: str) -> None:
        self.write(f"SUB {subject} 1\r\n".encode())

    def write(self, frames: bytes) -> None:
        self._transport.write(frames)

    async def reach_server(self) -> None:
        """Return when the server has handled everything written before."""
        self._pong = asyncio.get_running_loop().create_future()
        self.write(b"PING\r\n")
        await asyncio.wait([self._pong, self.broken], return_when=asyncio.FIRST_COMPLETED)
        self.check()

    def check(self) -> None:
        """Raises `WireBroken` if the connection has failed."""
        if self.broken.done():
            self.broken.result()

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        now_ns = time.time_ns()
        if self._unread:
            data = self._unread + data
        start = 0
        bodies = []
        while (line_end := data.find(LINE_END, start)) >= 0:
            line = data[start:line_end]
            if not line.startswith((b"MSG ", b"HMSG ")):
                self._take_line(line)
                start = line_end + 2
                continue
            words = line.split()
            body_end = line_end + 2 + int(words[-1])
            if len(data) < body_end + 2:
                break
            # The line ends with the size of the headers and the size of headers and body.
            header_bytes = int(words[-2]) if line.startswith(b"H") else 0
            bodies.append(data[line_end + 2 + header_bytes : body_end])
            start = body_end + 2
        self._unread = data[start:]
        if bodies:
            self._on_messages(bodies, now_ns)

    def connection_lost(self, error: Exception | None) -> None:
        self._break(f"connection lost: {error!r}")

    def _take_line(self, line: bytes) -> None:
        if line == b"PING":
            self.write(b"PONG\r\n")
        elif line == b"PONG" and self._pong is not None and not self._pong.done():
            self._pong.set_result(None)
        elif line.startswith(b"-ERR"):
            self._break(line.decode())

    def _break(self, problem: str) -> None:
        if not self.broken.done():
            self.broken.set_exception(WireBroken(problem))
            # Retrieved here, because nothing awaits the future after a close on purpose.
            self.broken.exception()


async def connect(port: int, on_messages: OnMessages) -> Wire:
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(lambda: Wire(on_messages), HOST, port)
    await wire.reach_server()
    return wire


def publish_frame(subject: str, reply: str, message_id: str, body: bytes) -> bytes:
    """One message with the id by which the broker drops repeats."""
    headers = f"NATS/1.0\r\nNats-Msg-Id: {message_id}\r\n\r\n".encode()
    sizes = f"{len(headers)} {len(headers) + len(body)}"
    return b"HPUB %b\r\n%b%b\r\n" % (f"{subject} {reply} {sizes}".encode(), headers, body)
