"""The client: POST requests over kept-alive HTTP/1.1 connections."""

import asyncio
import re
import ssl
from collections.abc import Callable

from duetime.delivery.http_client.answer import HttpAnswer
from duetime.delivery.http_client.connection import Connection
from duetime.delivery.http_client.connector import Connector
from duetime.delivery.http_client.failures import (
    LacksResource,
    StaleConnection,
    TimedOut,
    check_punctual,
)
from duetime.delivery.http_client.pool import ConnectionPool
from duetime.delivery.http_client.proxy import HttpProxy
from duetime.delivery.http_client.resolver import Resolve, Resolver
from duetime.delivery.http_client.route import Route, default_ssl_context
from duetime.delivery.http_client.target import HttpTarget
from duetime.domain.limits import MAX_ANSWER_BYTES
from duetime.domain.outcome import NotSent
from duetime.network_failures import MEMORY

RESERVED_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers (lower case) that frame the request or steer the connection.

`header_lines` must not contain them, or the peer could disagree about where a request ends.
"""

CONNECTOR_GRACE_SECONDS = 0.1
"""Time after the deadline at which a connector is abandoned that has not kept it."""

_AUTHORIZATION = re.compile(rb"^authorization:", re.IGNORECASE | re.MULTILINE)


class HttpClient:
    """Sends POST requests. One client per event loop; any number of requests at a time.

    It neither limits concurrency, nor retries, nor follows redirects.
    """

    def __init__(
        self,
        *,
        answer_limit_bytes: int = MAX_ANSWER_BYTES,
        max_idle_seconds: float = 4.0,
        stale_seconds: float = 1.0,
        connect_timeout_seconds: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        proxy: HttpProxy | None = None,
        resolve_proxy: Resolve | None = None,
        max_connections: int = 65_536,
    ) -> None:
        """A reused connection is stale if it ends within `stale_seconds` after the request.

        `ssl_context` and `resolve` make the route of requests that bring none; see `Route`. All
        requests go through the `proxy` if there is one, and `resolve_proxy` finds it. Idle
        connections are closed for new ones when `max_connections` are open.
        """
        self._pool = ConnectionPool(max_idle_seconds, stale_seconds, max_connections)
        self._connector = Connector(
            self._pool,
            answer_limit_bytes=answer_limit_bytes,
            connect_timeout_seconds=connect_timeout_seconds,
            proxy=proxy,
            resolve_proxy=resolve_proxy or Resolver().resolve,
        )
        self._route = Route(
            resolve=resolve or Resolver().resolve, ssl_context=ssl_context or default_ssl_context()
        )
        self._opening: set[asyncio.Timeout] = set()

    async def post(
        self,
        target: HttpTarget,
        header_lines: bytes,
        body: bytes | None,
        timeout_seconds: float,
        *,
        on_new_connection: bool = False,
        may_send: Callable[[], bool] | None = None,
        route: Route | None = None,
    ) -> HttpAnswer:
        """Send one request and return the answer, whatever its status.

        `header_lines` are complete lines, `name: value` and CR LF each. They are already checked
        for line breaks inside and contain none of RESERVED_HEADERS. An `Authorization` among them
        replaces the one in the URL. `Content-Length` is always sent, 0 without a body.

        `timeout_seconds` covers everything: resolving, connecting, TLS, sending, and the answer
        to its last byte. Raises LacksResource if this process lacks a resource and nothing was
        sent; otherwise DeliveryFailure; StaleConnection when a kept-alive connection turned out
        to be closed, which cannot happen `on_new_connection`.

        If a connection has to be opened first, `may_send` is asked directly before the first byte
        of the request is written. If it says no, nothing is sent, and NotSent is raised.

        Requests use only connections that were opened for the same `route`.

        When the awaiting task is cancelled, the connection is aborted, and whether the request
        arrived is unknown.
        """
        now = asyncio.get_running_loop().time()
        deadline = now + timeout_seconds
        route = route or self._route
        key = (route, target.origin)
        try:
            request = _format_request(target, header_lines, body)
            connection = None if on_new_connection else self._pool.take(key, now)
            if connection is None:
                connection = await self._open(target, route, deadline, timeout_seconds)
                if may_send is not None and not may_send():
                    connection.keep_unused()
                    raise NotSent
        except MemoryError:
            raise LacksResource(MEMORY) from None
        try:
            return await connection.exchange(request, deadline, timeout_seconds)
        except StaleConnection:
            self._pool.distrust(key, asyncio.get_running_loop().time())
            raise

    async def close(self) -> None:
        """Close idle connections and abort busy ones. Idempotent.

        Requests under way and every later `post` raise ClientClosed. Returns when all sockets
        are closed.
        """
        now = asyncio.get_running_loop().time()
        self._pool.refuse()
        for opening in self._opening:
            if not opening.expired():
                opening.reschedule(now)
        await self._pool.close()

    async def _open(
        self, target: HttpTarget, route: Route, deadline: float, timeout_seconds: float
    ) -> Connection:
        self._pool.check_open()
        self._pool.begin_opening()
        # asyncio.timeout is slow, but it cancels a half-open connection, and opening is rare.
        # The connector keeps the deadline itself, because it knows whose fault a delay is.
        loop = asyncio.get_running_loop()
        due_at = deadline + CONNECTOR_GRACE_SECONDS
        limit = asyncio.timeout_at(due_at)
        try:
            async with limit:
                self._opening.add(limit)
                opened = await self._connector.open(target, route, deadline, timeout_seconds)
        except TimeoutError:
            self._pool.check_open()
            check_punctual(loop.time(), due_at)
            raise TimedOut(timeout_seconds) from None
        finally:
            self._opening.discard(limit)
            self._pool.end_opening()
        if loop.time() > deadline:
            # After a pause of this process the connection may be there before the timeout is seen.
            opened.keep_unused()
            check_punctual(loop.time(), deadline)
            raise TimedOut(timeout_seconds)
        return opened


def _format_request(target: HttpTarget, header_lines: bytes, body: bytes | None) -> bytes:
    if target.authorization is not None and not _AUTHORIZATION.search(header_lines):
        header_lines = b"Authorization: %b\r\n%b" % (target.authorization, header_lines)
    if body is None:
        return b"%b%bContent-Length: 0\r\n\r\n" % (target.head_start, header_lines)
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (target.head_start, header_lines, len(body), body)
