"""A network between a server and its database that a test can break and heal."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

PATIENCE_SECONDS = 10
CHUNK_BYTES = 64 * 1024


class Relay:
    """Forwards TCP connections to the host and port of a URL, from a thread of its own.

    `url` is the same URL with the relay's address. Other processes may connect to it, too.
    `cut`, `freeze` and `heal` return once they have taken effect; they are for any thread, and
    short enough to be called from an event loop.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._target = (parts.hostname, parts.port or 5432)
        self._reserved = _reserved_address()
        self._address = host, port = self._reserved.getsockname()
        user_info = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{user_info}@{host}:{port}"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._listener: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._moving = asyncio.Event()
        self._healed = threading.Event()
        self._healing: asyncio.Task[None] | None = None

    def cut(self) -> None:
        """Close every connection and refuse new ones, as when the database's host is gone."""
        self._await(self._cut)

    def freeze(self) -> None:
        """Move no more bytes, but keep connections and accept new ones, as when a firewall drops
        every packet. Neither side learns that the other has closed."""
        self._await(self._freeze)

    def heal(self) -> None:
        """Work again. Bytes held back while frozen arrive now."""
        self._await(self._heal)

    def heal_after(self, seconds: float) -> None:
        """Heal after a while; `wait_until_healed` waits for it."""
        self._healed.clear()
        self._loop.call_soon_threadsafe(self._loop.call_later, seconds, self._heal_soon)

    async def wait_until_healed(self) -> None:
        await asyncio.to_thread(self._healed.wait)

    async def _cut(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        tasks = list(self._connections)
        for task in tasks:
            for writer in self._connections[task]:
                writer.transport.abort()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _freeze(self) -> None:
        await self._listen()
        self._moving.clear()

    async def _heal(self) -> None:
        await self._listen()
        self._moving.set()

        self._healed.set()

    def _heal_soon(self) -> None:
        self._healing = self._loop.create_task(self._heal())

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(
                self._accept, *self._address, reuse_port=True
            )

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        writers = self._connections[task] = [writer]
        try:
            await self._moving.wait()
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            writers.append(far_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer))
                group.create_task(self._pump(far_reader, writer))
        except* (OSError, asyncio.CancelledError):
            # Either side is gone, or the relay was cut: both sides see the end.
            pass
        finally:
            for each in writers:
                each.transport.abort()
            del self._connections[task]

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(CHUNK_BYTES):
            await self._moving.wait()
            sink.write(chunk)
            await sink.drain()
        await self._moving.wait()
        sink.write_eof()

    def _await(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        self.heal()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()
        self._reserved.close()


def _reserved_address() -> socket.socket:
    """A socket that is bound but does not listen. While the relay is cut, connections are refused,
    and no other program gets the port, not even for an outgoing connection."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
