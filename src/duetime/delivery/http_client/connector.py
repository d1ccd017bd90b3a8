"""Opening connections: resolve the name, try its addresses in order, shake hands."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

from duetime.delivery.http_client.connection import Connection
from duetime.delivery.http_client.failures import DeliveryFailure, LacksResource, NotConnected
from duetime.delivery.http_client.pool import ConnectionPool
from duetime.delivery.http_client.target import HttpTarget
from duetime.network_failures import (
    LOCAL_PORTS,
    connect_problem,
    format_seconds,
    has_source_address,
    lookup_problem,
    name_not_found,
    scarce_resource,
)

Address = tuple[int, str]
"""Address family and numeric IP address."""

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Finds the addresses of (host, port), best first.

Every new connection calls it, even if the host is an IP address, and connects to no other
address than it returns. It may refuse by raising a DeliveryFailure. An OSError counts as a failed
look-up, an empty result as a name that does not exist.
"""


def default_ssl_context() -> ssl.SSLContext:
    """Verifies certificate and host name against the system's authorities."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def resolve_by_system(host: str, port: int) -> Sequence[Address]:
    """Ask the system's resolver, in its order of preference."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, str(address[0])) for family, _, _, _, address in found]


class Connector:
    """Opens connections that report to one pool."""

    def __init__(
        self,
        pool: ConnectionPool,
        *,
        answer_limit_bytes: int,
        connect_timeout_seconds: float,
        ssl_context: ssl.SSLContext,
        resolve: Resolve,
    ) -> None:
        self._pool = pool
        self._answer_limit_bytes = answer_limit_bytes
        self._connect_timeout_seconds = connect_timeout_seconds
        self._ssl_context = ssl_context
        self._resolve = resolve

    async def open(self, target: HttpTarget) -> Connection:
        """A new connection, TLS included. Raises DeliveryFailure, and LacksResource at the first
        address for which this process lacks a resource.

        Each address has `connect_timeout_seconds`, so that an address that drops packets does
        not hide the next. If all fail, the failure of the first, most preferred one is raised.
        """
        first_failure: DeliveryFailure | None = None
        for family, address in await self._addresses(target):
            try:
                return await self._open_address(target, family, address)
            except DeliveryFailure as failure:
                first_failure = first_failure or failure
        raise first_failure or NotConnected(name_not_found(target.host))

    async def _addresses(self, target: HttpTarget) -> Sequence[Address]:
        try:
            return await self._resolve(target.host, target.port)
        except OSError as error:
            resource = scarce_resource(error)
            if resource is not None:
                raise LacksResource(resource) from None
            raise NotConnected(lookup_problem(error, target.host)) from None
        except UnicodeError:
            raise NotConnected(name_not_found(target.host)) from None

    async def _open_address(self, target: HttpTarget, family: int, address: str) -> Connection:
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        limit = asyncio.timeout(self._connect_timeout_seconds)
        try:
            async with limit:
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, target.origin, self._pool, self._answer_limit_bytes),
                    address,
                    target.port,
                    family=family,
                    ssl=self._ssl_context if secure else None,
                    # An absolute name ends with a dot; names in certificates do not.
                    server_hostname=target.host.rstrip(".") if secure else None,
                )
        except OSError as error:
            if limit.expired():
                seconds = format_seconds(self._connect_timeout_seconds)
                raise NotConnected(f"could not connect: timed out after {seconds}") from None
            resource = scarce_resource(error)
            if resource is not None and (
                resource != LOCAL_PORTS or has_source_address(family, address, target.port)
            ):
                raise LacksResource(resource) from None
            raise NotConnected(connect_problem(error, target.host, uses_tls=secure)) from None
        return connection
