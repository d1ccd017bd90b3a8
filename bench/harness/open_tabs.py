"""Tabs of the Web UI that are left open: event streams in a process of their own."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Self, cast
from urllib.parse import quote

import msgspec
import uvloop

from bench.harness.child import Child, answer_parent

OPEN_SECONDS = 60.0


class OpenTabs(msgspec.Struct, frozen=True, kw_only=True):
    """The parent's first message, answered once every stream has sent something. `views` are the
    addresses of the pages, one for each tab."""

    port: int
    api_key: str
    views: list[str]


class CountTabs(msgspec.Struct, frozen=True):
    """The parent's later messages."""


class TabsCount(msgspec.Struct, frozen=True):
    """Streams that are open, and updates that all of them received."""

    open: int
    updates: int


class Tab(asyncio.Protocol):
    """Reads its stream and counts the updates in it."""

    def __init__(self, order: OpenTabs, view: str) -> None:
        self._order = order
        self._view = view
        self._end = b""
        self.began = asyncio.get_running_loop().create_future()
        self.is_open = False
        self.updates = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        cast("asyncio.Transport", transport).write(
            f"GET /ui/events?view={quote(self._view, safe='')} HTTP/1.1\r\nHost: bench\r\n"
            f"Accept: text/event-stream\r\nX-API-Key: {self._order.api_key}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        if not self.began.done():
            self.is_open = data.startswith(b"HTTP/1.1 200 ")
            self.began.set_result(None)
        # A name may be split between two pieces.
        text = self._end + data
        self.updates += text.count(b"event: blocks")
        self._end = text[-12:]

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if not self.began.done():
            self.began.set_result(None)


async def keep_open() -> None:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    order = msgspec.json.decode(await orders.readline(), type=OpenTabs)
    tabs = [Tab(order, view) for view in order.views]
    for tab in tabs:
        await loop.create_connection(lambda tab=tab: tab, "127.0.0.1", order.port)  # type: ignore[misc]
    await asyncio.gather(*(tab.began for tab in tabs))
    while True:
        count = TabsCount(sum(tab.is_open for tab in tabs), sum(tab.updates for tab in tabs))
        answer_parent(count)
        if not await orders.readline():
            return


class Tabs:
    """The parent's handle of the process."""

    def __init__(self, port: int, api_key: str, views: Sequence[str]) -> None:
        self._child = Child("bench.harness.open_tabs")
        order = OpenTabs(port=port, api_key=api_key, views=[*views])
        self._child.ask(order, TabsCount, OPEN_SECONDS)

    def count(self) -> TabsCount:
        return self._child.ask(CountTabs(), TabsCount, OPEN_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()


def main() -> None:
    uvloop.run(keep_open())


if __name__ == "__main__":
    main()
