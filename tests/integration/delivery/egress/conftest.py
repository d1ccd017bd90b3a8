"""Loops that show every address that is connected to, and let none but loopback through."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

import pytest
import uvloop

from tests.integration.delivery.egress.dns_server import DnsServer


class LeavesLoopback(BaseException):
    """A connection would have left this machine. No handler of failures catches it."""


class Connects:
    """The addresses of the connections made, in order."""

    def __init__(self) -> None:
        self.addresses: list[tuple[str, int]] = []
        self.left_loopback: list[str] = []

    def note(self, host: str, port: int) -> None:
        self.addresses.append((host, port))
        address = ip_address(host)
        mapped = getattr(address, "ipv4_mapped", None)
        if not (mapped or address).is_loopback:
            self.left_loopback.append(host)
            raise LeavesLoopback(host)


class WatchedUvloop(uvloop.Loop):
    """Uvloop connects to a host without a socket of Python's. Asyncio uses such sockets only."""

    connects: Connects | None = None

    async def create_connection(  # type: ignore[override]
        self, factory: Any, host: str | None = None, port: int | None = None, **more: Any
    ) -> Any:
        if self.connects is not None and host is not None and port is not None:
            self.connects.note(host, port)
        return await super().create_connection(factory, host, port, **more)  # type: ignore[arg-type]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": WatchedUvloop}


@pytest.fixture
async def connects(monkeypatch: pytest.MonkeyPatch) -> Connects:
    """Every connection of the test, whether a loop or a socket makes it."""
    connects = Connects()
    loop = asyncio.get_running_loop()
    if isinstance(loop, WatchedUvloop):
        loop.connects = connects
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _watched(getattr(socket.socket, name), connects))
    return connects


def _watched(method: Any, connects: Connects) -> Any:
    def watched(sock: socket.socket, address: Any) -> Any:
        if sock.type == socket.SOCK_STREAM and sock.family != socket.AF_UNIX:
            connects.note(*address[:2])
        return method(sock, address)

    return watched


@pytest.fixture
def dns() -> Iterator[DnsServer]:
    with DnsServer() as server:
        yield server
