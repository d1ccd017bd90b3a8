"""The server's protocol over the API on a memory store, on a socket of the loopback interface."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from duetime.server.connection_limits import ConnectionLimits
from duetime.server.door import Door
from duetime.server.guarded_protocol import GuardedProtocol
from tests.unit.api.asgi_client import ApiBench


class LoopbackServer:
    def __init__(self, api: ApiBench, port: int, state: ServerState) -> None:
        self.api = api
        self.port = port
        self._state = state

    @property
    def connections(self) -> int:
        """Connections that are open."""
        return len(self._state.connections)

    @property
    def protocols(self) -> list[Any]:
        return list(self._state.connections)

    async def open_connections(self) -> int:
        return self.connections

    async def timers_stored(self) -> int:
        return sum((await self.api.timers_stored()).values())

    async def connect(
        self, host: str | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """`host` is the address of the client."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, limit=2**24, local_addr=host and (host, 0)
        )
        connection: Any = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return reader, writer


@asynccontextmanager
async def loopback_server(
    api: ApiBench, limits: ConnectionLimits | None = None
) -> AsyncIterator[LoopbackServer]:
    door = Door(limits or ConnectionLimits(max_connections=1_000, max_surplus=100))
    await api.open()
    config = uvicorn.Config(
        api.app,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: GuardedProtocol(config, state, {}, loop, door=door), "127.0.0.1", 0
    )
    try:
        yield LoopbackServer(api, server.sockets[0].getsockname()[1], state)
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await server.wait_closed()


async def exchange(server: LoopbackServer, pieces: list[bytes], turns: list[int]) -> bytes:
    """All bytes that the server sends until it closes the connection. Between one piece and the
    next the event loop makes some turns, so that the server may see them apart."""
    reader, writer = await server.connect()
    try:
        received = asyncio.create_task(reader.read())
        for piece, count in zip(pieces, turns, strict=True):
            writer.write(piece)
            for _ in range(count):
                await _turn()
        return await received
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _turn() -> None:
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned
