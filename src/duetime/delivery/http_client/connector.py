"""Opening connections: resolve the name, connect to one of its addresses, shake hands."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any

from duetime.delivery.http_client.address_race import AddressRace, NoneConnected
from duetime.delivery.http_client.connection import Connection
from duetime.delivery.http_client.failures import (
    DeliveryFailure,
    LacksResource,
    NotConnected,
    TimedOut,
    check_punctual,
)
from duetime.delivery.http_client.pool import ConnectionPool
from duetime.delivery.http_client.resolver import Address, Resolve
from duetime.delivery.http_client.target import HttpTarget
from duetime.network_failures import (
    connect_problem,
    format_seconds,
    lacking_resource,
    lookup_problem,
    name_not_found,
    scarce_resource,
)


def default_ssl_context() -> ssl.SSLContext:
    """Verifies certificate and host name against the system's authorities."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


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

    async def addresses(
        self, target: HttpTarget, deadline: float, timeout_seconds: float
    ) -> Sequence[Address]:
        """The addresses of the host, by `deadline` (loop time). Raises DeliveryFailure and
        LacksResource."""
        host = target.host
        try:
            addresses = await self._resolve(host, target.port, deadline)
        except TimeoutError:
            seconds = format_seconds(timeout_seconds)
            raise NotConnected(f"host name not resolved within {seconds}: {host}") from None
        except OSError as error:
            resource = scarce_resource(error)
            if resource is not None:
                raise LacksResource(resource) from None
            raise NotConnected(lookup_problem(error, host)) from None
        except UnicodeError:
            raise NotConnected(name_not_found(host)) from None
        if not addresses:
            raise NotConnected(name_not_found(host))
        return addresses

    async def open(
        self,
        target: HttpTarget,
        addresses: Sequence[Address],
        deadline: float,
        timeout_seconds: float,
    ) -> Connection:
        """A new connection to one of the addresses, TLS included, by `deadline` (loop time). Raises
        DeliveryFailure and LacksResource.

        An address that drops packets does not hide the next: see `AddressRace`. If all fail, the
        failure of the most preferred one is raised, or that for which this process lacks a
        resource. The whole takes `connect_timeout_seconds` at most.
        """
        loop = asyncio.get_running_loop()
        due_at = min(deadline, loop.time() + self._connect_timeout_seconds)
        race = AddressRace(addresses, target.port, self._pool, due_at)
        try:
            async with asyncio.timeout_at(due_at):
                if len(addresses) == 1:
                    return await self._open_address(target, addresses[0])
                return await self._open_first(target, race)
        except TimeoutError:
            check_punctual(loop.time(), due_at)
            if race.lacks is not None:
                raise LacksResource(race.lacks) from None
            if due_at == deadline:
                raise TimedOut(timeout_seconds) from None
            seconds = format_seconds(self._connect_timeout_seconds)
            raise NotConnected(f"could not connect: timed out after {seconds}") from None

    async def _open_address(self, target: HttpTarget, address: Address) -> Connection:
        family, host = address
        try:
            return await self._connect(target, host=host, port=target.port, family=family)
        except OSError as error:
            raise _failure(target, address, error) from None

    async def _open_first(self, target: HttpTarget, race: AddressRace) -> Connection:
        first_failure: DeliveryFailure | LacksResource | None = None
        while True:
            try:
                address, connected = await race.connect_to_first()
            except NoneConnected as none_connected:
                failures = [_failure(target, *each) for each in none_connected.failures]
                lacking = [each for each in failures if isinstance(each, LacksResource)]
                raise first_failure or (lacking or failures)[0] from None
            try:
                return await self._connect(target, sock=connected)
            except BaseException as error:
                # Not every loop closes a socket that it was given in vain.
                connected.close()
                if not isinstance(error, OSError):
                    raise
                # The address answers, but TLS fails there. Another one may do better.
                first_failure = first_failure or _failure(target, address, error)

    async def _connect(self, target: HttpTarget, **to: Any) -> Connection:
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        connection = Connection(loop, target.origin, self._pool, self._answer_limit_bytes)
        try:
            await loop.create_connection(
                lambda: connection,
                ssl=self._ssl_context if secure else None,
                # An absolute name ends with a dot; names in certificates do not.
                server_hostname=target.host.rstrip(".") if secure else None,
                **to,
            )
        except BaseException:
            # If the wait ends just when the connection is made, uvloop drops the connection
            # without telling it.
            connection.abort()
            self._pool.remove(connection)
            raise
        return connection


def _failure(
    target: HttpTarget, address: Address, error: OSError
) -> DeliveryFailure | LacksResource:
    resource = lacking_resource(error, *address, target.port)
    if resource is not None:
        return LacksResource(resource)
    uses_tls = target.scheme == "https"
    return NotConnected(connect_problem(error, target.host, uses_tls=uses_tls))
