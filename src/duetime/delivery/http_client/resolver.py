"""Finds the addresses of hosts in threads of its own, so that no silent name server holds up
another name, or anything else that resolves names."""

import asyncio
import ipaddress
import math
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from threading import Thread

from duetime.delivery.http_client.failures import LacksResource, check_punctual
from duetime.network_failures import scarce_resource

Address = tuple[int, str]
"""Address family and numeric IP address."""

Resolve = Callable[[str, int, float], Awaitable[Sequence[Address]]]
"""Finds the addresses of (host, port), best first, by a deadline in the event loop's time.

Every new connection calls it, even if the host is an IP address, and connects to no other
address than it returns. It may refuse by raising a DeliveryFailure. An OSError counts as a failed
look-up, a TimeoutError as a name that did not resolve by the deadline, an empty result as a name
that does not exist. LacksResource says that this process could not ask.
"""

LookUp = Callable[[str], Sequence[Address]]
"""Finds the addresses of a host, and blocks its thread as long as that takes. Raises OSError or
UnicodeError."""

Result = Sequence[Address] | OSError | UnicodeError | LacksResource

LOOKUP_THREADS = "threads for name lookups"

FOUND_SECONDS = 5.0
"""Time for which addresses are used again."""

NOT_FOUND_SECONDS = 1.0
"""Time for which a failure stands."""

SLOW_SECONDS = 1.0
"""Time after which a lookup counts as slow. Name servers that work take less."""

TURN_SECONDS = 5.0
"""Longest wait for a thread."""

MAX_NAMES = 4_096
"""Names remembered."""


class Standing(IntEnum):
    """The threads that a name may use, by its last lookup. The order is that of precedence."""

    PROMPT = 128
    """The name servers answered promptly, whatever they said: all threads."""
    UNKNOWN = 24
    """There is nothing to go by. Shared with slow names, but not with prompt ones."""
    SLOW = 8
    """The last lookup was slow, or never ended. Shared with new names that turn out to be slow."""


@dataclass(frozen=True, slots=True)
class _Known:
    result: Result
    fresh_until: float
    standing: Standing


class _Lookup:
    __slots__ = ("done", "host", "result", "standing", "started_at", "waiters")

    def __init__(self, host: str, standing: Standing, done: asyncio.Future[None]) -> None:
        self.host = host
        self.standing = standing
        self.done = done
        self.waiters = 0
        self.started_at: float | None = None
        self.result: Result = ()

    def seconds_run(self, now: float) -> float:
        return 0.0 if self.started_at is None else now - self.started_at


def look_up_by_system(host: str) -> Sequence[Address]:
    """Ask the system's resolver, in its order of preference."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [(family, str(address[0])) for family, _, _, _, address in found]


class Resolver:
    """One lookup per name is under way at a time, in a thread of its own, and all who wait for the
    name share its result. Results are kept for some seconds.

    A thread that waits for a silent name server cannot be stopped. So there is a limit of
    threads, and most of them are for names whose last lookup was prompt: however many others
    hang, and even if a hundred prompt names fall silent together, a prompt name finds a thread.
    """

    def __init__(
        self,
        look_up: LookUp = look_up_by_system,
        *,
        found_seconds: float = FOUND_SECONDS,
        not_found_seconds: float = NOT_FOUND_SECONDS,
        slow_seconds: float = SLOW_SECONDS,
        turn_seconds: float = TURN_SECONDS,
    ) -> None:
        self._look_up = look_up
        self._found_seconds = found_seconds
        self._not_found_seconds = not_found_seconds
        self._slow_seconds = slow_seconds
        self._turn_seconds = turn_seconds
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._running: dict[str, _Lookup] = {}
        self._waiting: dict[Standing, dict[str, _Lookup]] = {each: {} for each in Standing}

    async def resolve(self, host: str, port: int, deadline: float) -> Sequence[Address]:
        """Implements `Resolve`. Raises LacksResource if the lookup did not get its turn in time."""
        literal = _literal_address(host)
        if literal is not None:
            return [literal]
        loop = asyncio.get_running_loop()
        known = self._known.get(host)
        if known is not None and known.fresh_until > loop.time():
            return _addresses(known.result)
        lookup = self._running.get(host) or self._find_waiting(host)
        if lookup is None:
            standing = Standing.UNKNOWN if known is None else known.standing
            lookup = _Lookup(host, standing, loop.create_future())
            self._waiting[standing][host] = lookup
            self._start_waiting(loop)
        lookup.waiters += 1
        try:
            await self._wait(loop, lookup, deadline)
        finally:
            lookup.waiters -= 1
            if not lookup.waiters:
                # Nobody needs it any more, unless it is under way already.
                self._waiting[lookup.standing].pop(host, None)
        return _addresses(lookup.result)

    async def _wait(
        self, loop: asyncio.AbstractEventLoop, lookup: _Lookup, deadline: float
    ) -> None:
        """Wait until the lookup is done. A lookup that had its turn and did not end in time is the
        name's fault: TimeoutError. Otherwise it is ours: LacksResource."""
        asked_at = loop.time()
        until = min(deadline, asked_at + self._turn_seconds)
        while not lookup.done.done() and until > loop.time():
            await asyncio.wait({lookup.done}, timeout=until - loop.time())
            if lookup.started_at is not None:
                until = deadline
        if lookup.done.done():
            return
        now = loop.time()
        check_punctual(now, until)
        waited = math.inf if lookup.started_at is None else lookup.started_at - asked_at
        if lookup.seconds_run(now) < min(waited, self._slow_seconds):
            raise LacksResource(LOOKUP_THREADS)
        raise TimeoutError

    def _find_waiting(self, host: str) -> _Lookup | None:
        for waiting in self._waiting.values():
            if host in waiting:
                return waiting[host]
        return None

    def _start_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start as many lookups as there are threads for."""
        for standing, waiting in self._waiting.items():
            while waiting and self._has_thread_for(standing, loop.time()):
                lookup = waiting.pop(next(iter(waiting)))
                self._start(loop, lookup)

    def _has_thread_for(self, standing: Standing, now: float) -> bool:
        if len(self._running) >= Standing.PROMPT or standing is Standing.PROMPT:
            return len(self._running) < Standing.PROMPT
        others = [
            lookup for lookup in self._running.values() if lookup.standing is not Standing.PROMPT
        ]
        if len(others) >= Standing.UNKNOWN or standing is Standing.UNKNOWN:
            return len(others) < Standing.UNKNOWN
        slow = sum(
            lookup.standing is Standing.SLOW or lookup.seconds_run(now) >= self._slow_seconds
            for lookup in others
        )
        return slow < Standing.SLOW

    def _start(self, loop: asyncio.AbstractEventLoop, lookup: _Lookup) -> None:
        lookup.started_at = loop.time()
        self._running[lookup.host] = lookup
        try:
            # A daemon, because a lookup that hangs must not keep the process from ending.
            Thread(
                target=self._run, args=[loop, lookup], name=f"lookup {lookup.host}", daemon=True
            ).start()
        except (RuntimeError, MemoryError) as error:
            # The system allows no more threads. Not finished here, because that starts the next
            # lookup: with many of them waiting, the calls would nest too deeply.
            lacks = LacksResource(scarce_resource(error) or LOOKUP_THREADS)
            loop.call_soon(self._finish, loop, lookup, lacks)

    def _run(self, loop: asyncio.AbstractEventLoop, lookup: _Lookup) -> None:
        """In the thread of the lookup."""
        result: Result
        try:
            result = self._look_up(lookup.host)
        except Exception as error:
            resource = scarce_resource(error)
            if resource is not None:
                result = LacksResource(resource)
            elif isinstance(error, OSError | UnicodeError):
                result = error
            else:
                result = OSError(str(error))
        try:
            loop.call_soon_threadsafe(self._finish, loop, lookup, result)
        except RuntimeError:
            return  # The loop was closed, and nobody waits any more.

    def _finish(self, loop: asyncio.AbstractEventLoop, lookup: _Lookup, result: Result) -> None:
        now = loop.time()
        self._running.pop(lookup.host, None)
        if not isinstance(result, LacksResource):
            found = not isinstance(result, Exception)
            fresh_until = now + (self._found_seconds if found else self._not_found_seconds)
            assert lookup.started_at is not None
            was_slow = now - lookup.started_at >= self._slow_seconds
            standing = Standing.SLOW if was_slow else Standing.PROMPT
            self._known[lookup.host] = _Known(result, fresh_until, standing)
            self._known.move_to_end(lookup.host)
            if len(self._known) > MAX_NAMES:
                self._known.popitem(last=False)
        lookup.result = result
        lookup.done.set_result(None)
        self._start_waiting(loop)


def _addresses(result: Result) -> Sequence[Address]:
    if isinstance(result, Exception):
        # All who wait raise the same one; its traceback would grow with each of them.
        raise result.with_traceback(None)
    return result


def _literal_address(host: str) -> Address | None:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return None
    return (socket.AF_INET if version == 4 else socket.AF_INET6, host)
