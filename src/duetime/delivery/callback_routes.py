"""The route of each namespace's callbacks: where they may go, and the certificate they present."""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache

from duetime.delivery.callback_guard import CallbackGuard, NamedList
from duetime.delivery.http_client import HttpTarget, Resolve, Route
from duetime.domain.errors import LocalShortage, StoreUnavailable
from duetime.domain.security.callback_networks import CallbackNetworks, InvalidNetworks
from duetime.ports.namespaces.view import NamespaceView

SETTING = "CALLBACK_NETWORKS"

OWN_LIST = "the list of its namespace (callbackNetworks)"

_ROUTES_REMEMBERED = 8_192
"""Different lists and certificates whose connections are kept for the next callback."""

LookUpNamespace = Callable[[str], Awaitable[None]]
"""Makes a namespace known that exists in the store. Raises StoreUnavailable."""


class CallbackRoutes:
    """Most namespaces share one route. A namespace with a list of its own or a client certificate
    shares another one with namespaces of the same list and certificate. It changes its route when
    its list changes: connections that were allowed by an earlier list are not used any more."""

    def __init__(
        self,
        guard: CallbackGuard | None,
        namespaces: NamespaceView,
        look_up: LookUpNamespace,
        *,
        resolve: Resolve,
        ssl_context: ssl.SSLContext,
        client_contexts: Mapping[str, ssl.SSLContext],
    ) -> None:
        """Without a guard nothing is judged here. `client_contexts` are for the namespaces with a
        certificate of their own."""
        self._guard = guard
        self._namespaces = namespaces
        self._look_up = look_up
        self._resolve = resolve
        self._ssl_context = ssl_context
        self._client_contexts = client_contexts
        self._shared = Route(
            resolve=resolve if guard is None else guard.guarded(resolve), ssl_context=ssl_context
        )
        self._own_route = lru_cache(_ROUTES_REMEMBERED)(self._new_route)

    def refusal_at_create(self, target: HttpTarget) -> str | None:
        """Why callbacks to the target can never be allowed; completes "callback.url"."""
        if self._guard is None:
            return None
        return self._guard.refusal_at_create(target.host, target.port)

    def known_route(self, namespace: str) -> Route | None:
        """None if the namespace is not known here; see `find_route`. Raises LocalShortage if this
        release cannot read its list."""
        known = self._namespaces.known(namespace)
        if known is None:
            return None
        networks = known.options.callback_networks
        if networks is None and namespace not in self._client_contexts:
            return self._shared
        return self._own_route(networks, self._client_contexts.get(namespace, self._ssl_context))

    async def find_route(self, namespace: str) -> Route:
        """Looks the namespace up first: another node may have created it just now. Raises
        LocalShortage if the store is away."""
        try:
            await self._look_up(namespace)
        except StoreUnavailable as error:
            raise LocalShortage(f"knowledge of namespaces ({error.message})") from None
        # The timers of a namespace that is gone are gone, too, or about to be.
        return self.known_route(namespace) or self._shared

    def _new_route(self, networks: str | None, ssl_context: ssl.SSLContext) -> Route:
        resolve = self._shared.resolve
        if networks is not None and self._guard is not None:
            try:
                narrowing = CallbackNetworks.parse(networks)
            except InvalidNetworks as error:
                # A newer release may have written it.
                raise LocalShortage(f"a readable list of networks ({error})") from None
            named = NamedList(OWN_LIST, narrowing)
            resolve = self._guard.narrowed(named).guarded(self._resolve)
        return Route(resolve=resolve, ssl_context=ssl_context)
