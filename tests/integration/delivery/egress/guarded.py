"""A destination with a guard, and callbacks for it."""

import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from msgspec import UNSET

from duetime.delivery.callback_guard import CallbackGuard, NamedList
from duetime.delivery.callback_routes import SETTING, CallbackRoutes
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient, HttpProxy, LookUp, Resolver, look_up_by_system
from duetime.domain.callback import CallbackProtocol, HttpCallback
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.outcome import Failed, Outcome
from duetime.domain.security.callback_networks import CallbackNetworks
from duetime.listener import OwnAddresses
from duetime.testing.virtual_clock import VirtualClock
from tests.unit.delivery.claims import always, claim_of

NAMESPACE = "orders"


class ChangingNamespaces:
    """Namespaces whose lists a test changes. `hidden` ones become known when they are looked up."""

    def __init__(self) -> None:
        self.networks: dict[str, str | None] = {NAMESPACE: None}
        self.hidden: dict[str, str | None] = {}
        self.failure: Exception | None = None

    @property
    def with_objective(self) -> Collection[str]:
        return ()

    def known(self, name: str) -> Namespace | None:
        if name not in self.networks:
            return None
        return Namespace(name, options=NamespaceOptions(callback_networks=self.networks[name]))

    async def look_up(self, name: str) -> None:
        if self.failure is not None:
            raise self.failure
        if name in self.hidden:
            self.networks[name] = self.hidden[name]


@asynccontextmanager
async def guarded_destination(
    networks: str = "public",
    *,
    look_up: LookUp = look_up_by_system,
    namespaces: ChangingNamespaces | None = None,
    own: OwnAddresses | None = None,
    proxy: HttpProxy | None = None,
    ssl_context: ssl.SSLContext | None = None,
    client_contexts: Mapping[str, ssl.SSLContext] | None = None,
    connect_timeout_seconds: float = 10.0,
) -> AsyncIterator[HttpDestination]:
    """Every connection looks its host up anew, and idle connections are kept for a minute."""
    namespaces = namespaces or ChangingNamespaces()
    context = ssl_context or ssl.create_default_context()
    resolver = Resolver(look_up, found_seconds=0, not_found_seconds=0)
    guard = CallbackGuard(
        [NamedList(SETTING, CallbackNetworks.parse(networks))], own or OwnAddresses()
    )
    routes = CallbackRoutes(
        guard if proxy is None or proxy.gets_addresses else None,
        namespaces,
        namespaces.look_up,
        resolve=resolver.resolve,
        ssl_context=context,
        client_contexts=client_contexts or {},
    )
    client = HttpClient(
        ssl_context=context,
        max_idle_seconds=60,
        proxy=proxy,
        connect_timeout_seconds=connect_timeout_seconds,
    )
    destination = HttpDestination(client, VirtualClock(), 5_000, routes=routes)
    try:
        yield destination
    finally:
        await destination.close()


def callback_to(url: str, timeout_ms: int | None = None) -> HttpCallback:
    return HttpCallback(
        url=url,
        headers=None,
        payload=UNSET,
        timeout_ms=timeout_ms,
        protocol=CallbackProtocol.STATUS,
    )


async def deliver(
    destination: HttpDestination, url: str, *, namespace: str = NAMESPACE, attempt: int = 1
) -> Outcome:
    claim = claim_of(callback_to(url), namespace=namespace, attempt=attempt)
    return await destination.deliver(claim, always)


async def failure_of(
    destination: HttpDestination, url: str, *, namespace: str = NAMESPACE
) -> Failed:
    outcome = await deliver(destination, url, namespace=namespace)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def refusal_of(destination: HttpDestination, url: str, *, namespace: str = NAMESPACE) -> str:
    """The error of a callback that was refused for good."""
    failure = await failure_of(destination, url, namespace=namespace)
    assert failure.is_final, failure.error
    assert not failure.blames_endpoint
    return failure.error
