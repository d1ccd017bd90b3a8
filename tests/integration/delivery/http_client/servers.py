"""Servers on loopback whose every byte a test decides."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from duetime.delivery.http_client import Address, HttpAnswer, HttpClient, Resolve, parse_target

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class ReceivedRequest:
    head: bytes
    body: bytes


class Peer:
    """The server's end of one connection."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = number
        self.requests: list[ReceivedRequest] = []
        self.client_closed = asyncio.Event()
        self.reader = reader
        self.writer = writer

    async def read_head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def read_request(self) -> ReceivedRequest:
        head = await self.read_head()
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        request = ReceivedRequest(head, await self.reader.readexactly(length))
        self.requests.append(request)
        return request

    async def wait_until_client_closes(self) -> None:
        """Read until the client closes or resets the connection."""
        try:
            while await self.reader.read(65_536):
                pass
        except ConnectionError:
            pass
        self.client_closed.set()

    async def see_client_close(self) -> None:
        """Wait until the client has closed, but less long than timeouts and idle times take."""
        async with asyncio.timeout(2):
            await self.client_closed.wait()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def send_bytes_one_by_one(self, data: bytes) -> None:
        for position in range(len(data)):
            self.writer.write(data[position : position + 1])
            await let_the_loop_turn()

    def send_end(self) -> None:
        """Close this direction only."""
        self.writer.write_eof()

    def close(self) -> None:
        self.writer.close()

    async def drop(self) -> None:
        """Return when the socket is closed; unsent bytes are lost."""
        self.writer.transport.abort()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.writer.transport.abort()

    def tls(self) -> ssl.SSLObject:
        found = self.writer.get_extra_info("ssl_object")
        assert isinstance(found, ssl.SSLObject)
        return found


Behaviour = Callable[[Peer], Awaitable[None]]


class Server:
    """Runs one behaviour per connection. A failed assertion in it fails the test."""

    def __init__(self, behaviour: Behaviour, scheme: str) -> None:
        self.peers: list[Peer] = []
        self.port = 0
        self._behaviour = behaviour
        self._scheme = scheme
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = False

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"{self._scheme}://{host}:{self.port}{path}"

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._stopped:
            # Accepted just before the listener was closed.
            writer.transport.abort()
            return
        peer = Peer(len(self.peers), reader, writer)
        self.peers.append(peer)
        self._tasks.append(asyncio.ensure_future(self._run(peer)))

    async def _run(self, peer: Peer) -> None:
        try:
            await self._behaviour(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            peer.client_closed.set()

    async def stop(self) -> None:
        self._stopped = True
        for peer in self.peers:
            await peer.drop()
        for task in self._tasks:
            if not task.done():
                task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


@asynccontextmanager
async def serve(
    behaviour: Behaviour, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server(behaviour, "https" if tls else "http")
    listener = await asyncio.start_server(server.connected, host, 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        await server.stop()
        await let_the_loop_turn()


def answer_each_with(answer: bytes) -> Behaviour:
    """Keep the connection and answer all requests alike."""

    async def behave(peer: Peer) -> None:
        while True:
            await peer.read_request()
            peer.send(answer)

    return behave


def answer_once_and_close(answer: bytes) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(answer)
        peer.close()

    return behave


def answer_once_and_watch(answer: bytes) -> Behaviour:
    """Answer one request; `client_closed` shows what the client does next."""

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(answer)
        await peer.wait_until_client_closes()

    return behave


def close_on_second_requests() -> Behaviour:
    """Answer the first request of each connection, those of the first two together, and close the
    connection on its second one."""
    both_there = asyncio.Barrier(2)

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        if peer.number < 2:
            await both_there.wait()
        peer.send(OK)
        await peer.read_request()
        peer.close()

    return behave


async def let_the_loop_turn() -> None:
    """Run everything that is ready now, sockets included."""
    loop = asyncio.get_running_loop()
    for _ in range(3):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


async def post(
    client: HttpClient, url: str, body: bytes | None = b"{}", timeout_seconds: float = 5.0
) -> HttpAnswer:
    return await client.post(parse_target(url), b"", body, timeout_seconds)


def resolving_to(*addresses: str, by_name: dict[str, list[str]] | None = None) -> Resolve:
    async def resolve(host: str, port: int, deadline: float) -> Sequence[Address]:
        found = (by_name or {}).get(host, addresses)
        return [(socket.AF_INET, address) for address in found]

    return resolve


def fill_backlog(
    listener: socket.socket, host: str = "127.0.0.1", port: int = 0
) -> list[socket.socket]:
    """Make `listener` listen but take no more connections, so that connecting hangs."""
    listener.bind((host, port))
    listener.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
    return fillers
