"""A small CONNECT proxy on loopback. Names that end with `.example` are on loopback."""

import asyncio
from contextlib import suppress

from tests.integration.delivery.http_client.servers import Behaviour, Peer


class Proxy:
    """`behaviour` opens tunnels, and `asked` has the head of each request."""

    def __init__(self, *, credentials: bytes | None = None) -> None:
        self.asked: list[bytes] = []
        self._credentials = credentials

    @property
    def behaviour(self) -> Behaviour:
        return self._behave

    @property
    def targets(self) -> list[bytes]:
        return [head.split(b" ")[1] for head in self.asked]

    async def _behave(self, peer: Peer) -> None:
        head = await peer.read_head()
        self.asked.append(head)
        if self._credentials is not None and b"Basic %b\r\n" % self._credentials not in head:
            peer.send(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        host = "127.0.0.1" if host.endswith(".example") else host.strip("[]")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            peer.send(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            peer.close()
            return
        peer.send(b"HTTP/1.1 200 Connection established\r\nX-Proxy: test\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(peer.reader, writer))
            group.create_task(_pump(reader, peer.writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece)
    with suppress(OSError, RuntimeError):
        writer.close()
