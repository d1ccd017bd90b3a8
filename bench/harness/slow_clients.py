"""Connections of one peer that are silent or slow, in a process of their own.

A connection that the server ends is opened again, so their number stays.
"""

import asyncio
import socket
import sys
from enum import Enum
from itertools import cycle
from typing import Self, cast

import msgspec
import uvloop

from bench.harness.child import Child, answer_parent

OPEN_SECONDS = 60.0
DRIP_SECONDS = 1.0
"""Time between two bytes of a slow head or body."""

SLICES = 100
"""Parts of the connections that send their bytes one after the other."""

AGAIN_SECONDS = 1.0
"""Time until a connection that was ended is opened again."""

SMALL_BUFFER = 4_096
UNREAD_ANSWERS = 20


class SlowManner(Enum):
    SILENT = "silent"
    HEAD = "slow head"
    BODY = "slow body"
    ANSWER = "unread answer"


class Occupy(msgspec.Struct, frozen=True, kw_only=True):
    """The parent's first message, answered once all connections are open."""

    port: int
    api_key: str
    connections: int


class Tell(msgspec.Struct, frozen=True):
    """The parent's later messages."""


class Occupied(msgspec.Struct, frozen=True):
    """`open` connections are open; `opened` counts those that were opened again, too."""

    open: int
    opened: int


class SlowConnection(asyncio.Protocol):
    def __init__(self, peer: "SlowPeer", manner: SlowManner) -> None:
        self._peer = peer
        self._manner = manner
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = transport = cast("asyncio.Transport", transport)
        self._peer.open += 1
        self._peer.opened += 1
        if self._manner is SlowManner.ANSWER:
            transport.pause_reading()
        transport.write(self._peer.first_bytes(self._manner))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._peer.open -= 1
        self._peer.open_again(self, self._manner)

    def drip(self) -> None:
        if self._transport is not None and self._manner in (SlowManner.HEAD, SlowManner.BODY):
            self._transport.write(b"x")


class SlowPeer:
    def __init__(self, order: Occupy) -> None:
        self._order = order
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: list[SlowConnection] = []
        self.open = 0
        self.opened = 0

    def first_bytes(self, manner: SlowManner) -> bytes:
        head = f"Host: bench\r\nX-API-Key: {self._order.api_key}\r\n"
        match manner:
            case SlowManner.SILENT:
                return b""
            case SlowManner.HEAD:
                return b"POST /timers HTTP/1.1\r\nHost: bench\r\nX-"
            case SlowManner.BODY:
                return f"POST /timers HTTP/1.1\r\n{head}Content-Length: 60000\r\n\r\n".encode()
            case SlowManner.ANSWER:
                return f"GET /openapi.json HTTP/1.1\r\n{head}\r\n".encode() * UNREAD_ANSWERS

    async def open_all(self) -> None:
        manners = cycle(SlowManner)
        for _ in range(self._order.connections):
            self._connections.append(await self._connect(next(manners)))

    def open_again(self, ended: SlowConnection, manner: SlowManner) -> None:
        async def reopen() -> None:
            await asyncio.sleep(AGAIN_SECONDS)
            self._connections[self._connections.index(ended)] = await self._connect(manner)

        task = self._loop.create_task(reopen())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, manner: SlowManner) -> SlowConnection:
        client = socket.socket()
        client.setblocking(False)
        if manner is SlowManner.ANSWER:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        await self._loop.sock_connect(client, ("127.0.0.1", self._order.port))
        _, connection = await self._loop.create_connection(
            lambda: SlowConnection(self, manner), sock=client
        )
        return connection

    async def drip_for_ever(self) -> None:
        for start in cycle(range(SLICES)):
            for connection in self._connections[start::SLICES]:
                connection.drip()
            await asyncio.sleep(DRIP_SECONDS / SLICES)


async def occupy() -> None:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    peer = SlowPeer(msgspec.json.decode(await orders.readline(), type=Occupy))
    await peer.open_all()
    dripping = loop.create_task(peer.drip_for_ever())
    answer_parent(Occupied(peer.open, peer.opened))
    while await orders.readline():
        answer_parent(Occupied(peer.open, peer.opened))
    dripping.cancel()


class SlowClients:
    """The parent's handle of the process."""

    def __init__(self, port: int, api_key: str, connections: int) -> None:
        self._child = Child("bench.harness.slow_clients")
        order = Occupy(port=port, api_key=api_key, connections=connections)
        self._child.ask(order, Occupied, OPEN_SECONDS)

    def count(self) -> Occupied:
        return self._child.ask(Tell(), Occupied, OPEN_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()


def main() -> None:
    uvloop.run(occupy())


if __name__ == "__main__":
    main()
