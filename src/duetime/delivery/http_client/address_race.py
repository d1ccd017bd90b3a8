"""Happy Eyeballs (RFC 8305): tries the addresses of a host side by side, so that one that drops
packets costs a fraction of a second."""

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest

from duetime.delivery.http_client.resolver import Address

HEAD_START_SECONDS = 0.25
"""Time that an address has before the next one is tried beside it."""

MAX_ADDRESSES = 8
"""Addresses tried for one connection."""


class NoneConnected(Exception):
    """All addresses failed. `failures` are in the order of preference."""

    def __init__(self, failures: Sequence[tuple[Address, OSError]]) -> None:
        super().__init__("no address could be connected to")
        self.failures = failures


async def connect_to_first(
    addresses: Sequence[Address], port: int
) -> tuple[Address, socket.socket]:
    """The first connection that is established, and its address; all others are closed.

    Families take turns, beginning with that of the first address. An address is tried when the one
    before it has failed or had its head start. Raises NoneConnected. Sets no limit of time, except
    for that of the system.
    """
    ordered = interleave(addresses)[:MAX_ADDRESSES]
    tries: list[asyncio.Task[socket.socket]] = []
    winner: asyncio.Task[socket.socket] | None = None
    try:
        while winner is None:
            is_last = len(tries) == len(ordered)
            if not is_last:
                tries.append(asyncio.ensure_future(_connect(ordered[len(tries)], port)))
                is_last = len(tries) == len(ordered)
            running = {each for each in tries if not each.done()}
            if running:
                await asyncio.wait(
                    running,
                    timeout=None if is_last else HEAD_START_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            winner = next((each for each in tries if _is_connected(each)), None)
            if winner is None and is_last and all(each.done() for each in tries):
                raise NoneConnected(list(zip(ordered, map(_failure, tries), strict=True)))
        return ordered[tries.index(winner)], winner.result()
    finally:
        for each in tries:
            if each is not winner:
                # One that was cancelled in time closes its socket itself.
                if _is_connected(each):
                    each.result().close()
                each.cancel()


def interleave(addresses: Sequence[Address]) -> list[Address]:
    """Alternate between the families, beginning with that of the first address. Otherwise the order
    stays."""
    families: dict[int, list[Address]] = {}
    for address in dict.fromkeys(addresses):
        families.setdefault(address[0], []).append(address)
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


def _is_connected(task: "asyncio.Task[socket.socket]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _failure(task: "asyncio.Task[socket.socket]") -> OSError:
    error = task.exception()
    if not isinstance(error, OSError):
        raise error or RuntimeError("the address did not fail")
    return error


async def _connect(address: Address, port: int) -> socket.socket:
    # Not by `loop.sock_connect`: uvloop's looks the address up in the threads that the connections
    # to databases and brokers need.
    loop = asyncio.get_running_loop()
    family, host = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        problem = sock.connect_ex((host, port))
        if problem == errno.EINPROGRESS:
            writable = loop.create_future()
            loop.add_writer(sock, _wake, writable)
            try:
                await writable
            finally:
                loop.remove_writer(sock)
            problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            raise OSError(problem, os.strerror(problem))
    except BaseException:
        sock.close()
        raise
    return sock


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
