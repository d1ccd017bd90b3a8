"""Opening connections: resolve the name, connect to one of its addresses or through the proxy, and
shake hands."""

import asyncio
import socket
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
    connection_problem,
)
from duetime.delivery.http_client.pool import ConnectionPool
from duetime.delivery.http_client.proxy import HttpProxy, TunnelRefused, open_tunnel, proxy_away
from duetime.delivery.http_client.resolver import Address, Resolve
from duetime.delivery.http_client.route import Route
from duetime.delivery.http_client.target import HttpTarget
from duetime.network_failures import (
    connect_problem,
    format_seconds,
    lacking_resource,
    lookup_problem,
    name_not_found,
    scarce_resource,
)

MAX_TUNNELS = 3
"""Addresses of a target for which the proxy is asked in turn."""


class Connector:
    """Opens connections that report to one pool."""

    def __init__(
        self,
        pool: ConnectionPool,
        *,
        answer_limit_bytes: int,
        connect_timeout_seconds: float,
        proxy: HttpProxy | None,
        resolve_proxy: Resolve,
    ) -> None:
        self._pool = pool
        self._answer_limit_bytes = answer_limit_bytes
        self._connect_timeout_seconds = connect_timeout_seconds
        self._proxy = proxy
        self._resolve_proxy = resolve_proxy

    async def open(
        self, target: HttpTarget, route: Route, deadline: float, timeout_seconds: float
    ) -> Connection:
        """A new connection to the target, by `deadline` (loop time), TLS included. Raises
        DeliveryFailure and LacksResource.

        Only addresses that the route's `resolve` returned are connected to, or named to the proxy.
        A proxy that resolves names itself is given the name.
        """
        proxy = self._proxy
        addresses: Sequence[Address] = ()
        if proxy is None or proxy.gets_addresses:
            addresses = await _addresses(
                route.resolve, target.host, target.port, deadline, timeout_seconds
            )
        if proxy is None:
            return await self._open_directly(target, route, addresses, deadline, timeout_seconds)
        hosts = [host for _, host in addresses[:MAX_TUNNELS]] or [target.host]
        return await self._open_through(proxy, target, route, hosts, deadline, timeout_seconds)

    async def _open_directly(
        self,
        target: HttpTarget,
        route: Route,
        addresses: Sequence[Address],
        deadline: float,
        timeout_seconds: float,
    ) -> Connection:
        """An address that drops packets does not hide the next: see `AddressRace`. If all fail, the
        failure of the most preferred one is raised, or that for which this process lacks a
        resource. The whole takes `connect_timeout_seconds` at most.
        """
        loop = asyncio.get_running_loop()
        due_at = min(deadline, loop.time() + self._connect_timeout_seconds)
        race = AddressRace(addresses, target.port, self._pool, due_at)
        try:
            async with asyncio.timeout_at(due_at):
                if len(addresses) == 1:
                    return await self._open_address(target, route, addresses[0])
                return await self._open_first(target, route, race)
        except TimeoutError:
            check_punctual(loop.time(), due_at)
            if race.lacks is not None:
                raise LacksResource(race.lacks) from None
            if due_at == deadline:
                raise TimedOut(timeout_seconds) from None
            seconds = format_seconds(self._connect_timeout_seconds)
            raise NotConnected(f"could not connect: timed out after {seconds}") from None

    async def _open_address(self, target: HttpTarget, route: Route, address: Address) -> Connection:
        family, host = address
        try:
            return await self._connect(target, route, host=host, port=target.port, family=family)
        except OSError as error:
            raise _failure(target, address, error) from None

    async def _open_first(self, target: HttpTarget, route: Route, race: AddressRace) -> Connection:
        first_failure: DeliveryFailure | LacksResource | None = None
        while True:
            try:
                address, connected = await race.connect_to_first()
            except NoneConnected as none_connected:
                failures = [_failure(target, *each) for each in none_connected.failures]
                lacking = [each for each in failures if isinstance(each, LacksResource)]
                raise first_failure or (lacking or failures)[0] from None
            try:
                return await self._connect(target, route, sock=connected)
            except BaseException as error:
                # Not every loop closes a socket that it was given in vain.
                connected.close()
                if not isinstance(error, OSError):
                    raise
                # The address answers, but TLS fails there. Another one may do better.
                first_failure = first_failure or _failure(target, address, error)

    async def _open_through(
        self,
        proxy: HttpProxy,
        target: HttpTarget,
        route: Route,
        hosts: Sequence[str],
        deadline: float,
        timeout_seconds: float,
    ) -> Connection:
        """A tunnel to the first of the hosts to which the proxy opens one. The whole takes
        `connect_timeout_seconds` at most."""
        loop = asyncio.get_running_loop()
        due_at = min(deadline, loop.time() + self._connect_timeout_seconds)
        first_failure: DeliveryFailure | None = None
        for host in hosts:
            connected = await self._connect_to_proxy(proxy, due_at)
            try:
                async with asyncio.timeout_at(due_at):
                    await open_tunnel(connected, proxy, host, target.port)
                    return await self._connect(target, route, sock=connected)
            except BaseException as error:
                connected.close()
                if isinstance(error, TimeoutError):
                    # Most likely the proxy waits for the target.
                    check_punctual(loop.time(), due_at)
                    seconds = format_seconds(min(timeout_seconds, self._connect_timeout_seconds))
                    problem = f"the proxy {proxy.name} opened no tunnel within {seconds}"
                    raise first_failure or NotConnected(problem) from None
                if isinstance(error, OSError):
                    resource = scarce_resource(error)
                    raise _failure_or_shortage(target, error, resource) from None
                if not isinstance(error, TunnelRefused):
                    raise
                first_failure = first_failure or error
        assert first_failure is not None
        raise first_failure

    async def _connect_to_proxy(self, proxy: HttpProxy, due_at: float) -> socket.socket:
        """Raises LacksResource: nothing is known about the target."""
        loop = asyncio.get_running_loop()
        try:
            addresses = await _addresses(
                self._resolve_proxy, proxy.host, proxy.port, due_at, due_at - loop.time()
            )
            async with asyncio.timeout_at(due_at):
                race = AddressRace(addresses, proxy.port, self._pool, due_at)
                return (await race.connect_to_first())[1]
        except TimeoutError:
            check_punctual(loop.time(), due_at)
            raise proxy_away(proxy, "timed out") from None
        except NotConnected as failure:
            raise proxy_away(proxy, str(failure)) from None
        except NoneConnected as none_connected:
            failures = [
                (lacking_resource(error, *address, proxy.port), error)
                for address, error in none_connected.failures
            ]
            for resource, _ in failures:
                if resource is not None:
                    raise LacksResource(resource) from None
            problem = connect_problem(failures[0][1], proxy.host, uses_tls=False)
            raise proxy_away(proxy, problem) from None

    async def _connect(self, target: HttpTarget, route: Route, **to: Any) -> Connection:
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        key = (route, target.origin)
        connection = Connection(loop, key, self._pool, self._answer_limit_bytes)
        try:
            await loop.create_connection(
                lambda: connection,
                ssl=route.ssl_context if secure else None,
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


async def _addresses(
    resolve: Resolve, host: str, port: int, deadline: float, timeout_seconds: float
) -> Sequence[Address]:
    """The addresses of the host, by `deadline` (loop time). Raises DeliveryFailure and
    LacksResource."""
    try:
        addresses = await resolve(host, port, deadline)
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


def _failure(
    target: HttpTarget, address: Address, error: OSError
) -> DeliveryFailure | LacksResource:
    resource = lacking_resource(error, *address, target.port)
    return _failure_or_shortage(target, error, resource)


def _failure_or_shortage(
    target: HttpTarget, error: OSError, resource: str | None
) -> DeliveryFailure | LacksResource:
    if resource is not None:
        return LacksResource(resource)
    uses_tls = target.scheme == "https"
    return NotConnected(connection_problem(error, target.host, uses_tls=uses_tls))
