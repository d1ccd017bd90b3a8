"""Happy Eyeballs (RFC 8305): tries the addresses of a host side by side, so that one that drops
packets costs a fraction of a second."""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Protocol

from duetime.delivery.http_client.resolver import Address
from duetime.network_failures import FILE_DESCRIPTORS, lacking_resource

HEAD_START_SECONDS = 0.25
"""Time that an address has before the next one is tried beside it."""

MAX_ADDRESSES = 8
"""Addresses tried for one connection."""


class SpareTry(Protocol):
    """A try beside another one of the same race, which can do without it for a while."""

    def give_up(self) -> None: ...


class Room(Protocol):
    """The sockets that may be open: `ConnectionPool`. Each race has a place there already, for one
    try at a time."""

    def has_room(self) -> bool:
        """Whether one more try may be started beside another."""
        ...

    def add_spare(self, spare: SpareTry) -> None: ...

    def remove_spare(self, spare: SpareTry) -> None:
        """The try has ended, or has the race's own place now. Idempotent."""
        ...


class NoneConnected(Exception):
    """All addresses failed. `failures` are in the order of preference."""

    def __init__(self, failures: Sequence[tuple[Address, OSError]]) -> None:
        super().__init__("no address could be connected to")
        self.failures = failures


class AddressRace:
    """Families take turns, beginning with that of the first address. An address is tried when the
    one before it has failed or had its head start.

    Without room for a further try, an address gives way to the next one when it has had its equal
    part of the time. An address for which a resource is lacking is tried again.
    """

    def __init__(self, addresses: Sequence[Address], port: int, room: Room, due_at: float) -> None:
        """The race is to be over at `due_at` (loop time)."""
        self._ordered = interleave(addresses)[:MAX_ADDRESSES]
        self._port = port
        self._room = room
        self._due_at = due_at
        self._waiting: deque[Address] = deque()
        self._tries: list[_Try] = []
        self._failures: dict[Address, OSError] = {}
        self._lacked: str | None = None

    @property
    def lacks(self) -> str | None:
        """The resource for want of which an address was not tried, if time is over now."""
        return self._lacked if self._waiting else None

    async def connect_to_first(self) -> tuple[Address, socket.socket]:
        """The first connection that is established, and its address; all others are closed. If it
        proves useless, call again to race for one of the other addresses.

        Raises NoneConnected. Sets no limit of time, except for that of the system.
        """
        self._waiting = deque(self._ordered)
        self._failures.clear()
        self._lacked = None
        try:
            while self._waiting or self._tries:
                self._start_next()
                if not self._tries:
                    break
                await asyncio.wait(
                    [each.writable for each in self._tries],
                    timeout=HEAD_START_SECONDS if self._waiting else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                winner = self._sort_out()
                if winner is not None:
                    return winner.address, self._detach(winner)
        finally:
            while self._tries:
                self._drop(self._tries[-1])
        raise NoneConnected(
            [(each, self._failures[each]) for each in self._ordered if each in self._failures]
        )

    def _start_next(self) -> None:
        """Try the next address, or the first one after it that does not fail at once."""
        for _ in range(len(self._waiting)):
            is_spare = bool(self._tries)
            if is_spare and not self._room.has_room():
                self._lacked = FILE_DESCRIPTORS
                if not self._oldest_gives_way():
                    return
                is_spare = bool(self._tries)
            address = self._waiting.popleft()
            try:
                started = _Try(address, self._port)
            except OSError as error:
                self._fail(address, error)
                continue
            self._tries.append(started)
            if is_spare:
                self._room.add_spare(started)
            return

    def _oldest_gives_way(self) -> bool:
        """Whether there was a try that has had its part of the time."""
        now = asyncio.get_running_loop().time()
        oldest = self._tries[0]
        part_seconds = (self._due_at - now) / len(self._waiting)
        if now - oldest.began_at < max(part_seconds, HEAD_START_SECONDS):
            return False
        self._drop(oldest)
        self._fail(oldest.address, OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
        return True

    def _sort_out(self) -> "_Try | None":
        """Remove the tries that have ended. Returns one that is connected, if any."""
        for each in [each for each in self._tries if each.writable.done()]:
            if each.is_closed:
                self._drop(each)
                self._lacked = FILE_DESCRIPTORS
                self._waiting.append(each.address)
            elif error := each.error():
                self._drop(each)
                self._fail(each.address, error)
            else:
                return each
        return None

    def _fail(self, address: Address, error: OSError) -> None:
        self._failures[address] = error
        resource = lacking_resource(error, *address, self._port)
        if resource is not None:
            self._lacked = resource
            self._waiting.append(address)

    def _detach(self, winner: "_Try") -> socket.socket:
        """The socket, which is the caller's to close from now on."""
        self._waiting.clear()
        self._ordered.remove(winner.address)
        self._tries.remove(winner)
        self._room.remove_spare(winner)
        return winner.sock

    def _drop(self, ended: "_Try") -> None:
        self._tries.remove(ended)
        self._room.remove_spare(ended)
        ended.close()
        if self._tries:
            # The race's own place is free for it now.
            self._room.remove_spare(self._tries[0])


class _Try:
    """Connecting to one address. `writable` is done when that has succeeded, failed or been given
    up, which leaves the try closed."""

    __slots__ = ("address", "began_at", "sock", "writable")

    def __init__(self, address: Address, port: int) -> None:
        """Raises OSError if connecting fails at once."""
        # Not by `loop.sock_connect`: uvloop's looks the address up in the threads that the
        # connections to databases and brokers need.
        loop = asyncio.get_running_loop()
        family, host = address
        self.address = address
        self.began_at = loop.time()
        self.writable: asyncio.Future[None] = loop.create_future()
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.sock.setblocking(False)
            problem = self.sock.connect_ex((host, port))
            if problem == errno.EINPROGRESS:
                loop.add_writer(self.sock, self._finish)
            elif problem:
                raise OSError(problem, os.strerror(problem))
            else:
                self.writable.set_result(None)
        except BaseException:
            self.sock.close()
            raise

    @property
    def is_closed(self) -> bool:
        return self.sock.fileno() == -1

    def error(self) -> OSError | None:
        """Why connecting failed, if it did. Only when `writable` is done."""
        problem = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(problem, os.strerror(problem)) if problem else None

    def give_up(self) -> None:
        self.close()
        self.writable.cancel()

    def close(self) -> None:
        if not self.is_closed:
            self.writable.get_loop().remove_writer(self.sock)
            self.sock.close()

    def _finish(self) -> None:
        self.writable.get_loop().remove_writer(self.sock)
        self.writable.set_result(None)


def interleave(addresses: Sequence[Address]) -> list[Address]:
    """Alternate between the families, beginning with that of the first address. Otherwise the order
    stays."""
    families: dict[int, list[Address]] = {}
    for address in dict.fromkeys(addresses):
        families.setdefault(address[0], []).append(address)
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]
