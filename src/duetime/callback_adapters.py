"""The destinations of callbacks as the settings want them. HTTP has allowed networks, a proxy and
certificates."""

import base64
from typing import TYPE_CHECKING

from duetime.bus.events import EventDestination
from duetime.clock import SystemClock
from duetime.delivery.callback_guard import CallbackGuard, NamedList
from duetime.delivery.callback_routes import SETTING, CallbackRoutes, LookUpNamespace
from duetime.delivery.destination_router import DestinationRouter
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient, HttpProxy, Resolver, default_ssl_context
from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.listener import OwnAddresses
from duetime.ports.destination import CallbackInbox, Destination
from duetime.ports.namespaces.view import NamespaceView
from duetime.ports.signer import SignerView
from duetime.sealing.callbacks import CallbackSealer
from duetime.settings import Settings
from duetime.telemetry.traces.destination import AttemptTracer, TracedDestination

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection


def http_destination(
    settings: Settings,
    clock: SystemClock,
    namespaces: NamespaceView,
    look_up: LookUpNamespace,
    own: OwnAddresses,
    max_connections: int,
    signers: SignerView,
    inbox: CallbackInbox,
) -> HttpDestination:
    resolve = Resolver().resolve
    ca_file = settings.callback_ca_file
    ssl_context = default_ssl_context(ca_file)
    proxy = _proxy(settings)
    guard = None
    if settings.judges_callbacks:
        guard = CallbackGuard([NamedList(SETTING, settings.callback_networks)], own)
    routes = CallbackRoutes(
        guard,
        namespaces,
        look_up,
        resolve=resolve,
        ssl_context=ssl_context,
        client_contexts={
            name: default_ssl_context(ca_file, (each.certificate_file, each.key_file))
            for name, each in settings.client_certificates.items()
        },
    )
    client = HttpClient(
        ssl_context=ssl_context,
        resolve=resolve,
        proxy=proxy,
        resolve_proxy=resolve,
        max_connections=max_connections,
    )
    return HttpDestination(
        client,
        clock,
        callback_timeout_ms(settings),
        kept_answer_bytes=settings.kept_answer_bytes,
        routes=routes,
        signers=signers,
        inbox=inbox,
    )


def callback_destination(
    settings: Settings,
    clock: SystemClock,
    http: HttpDestination,
    nats: "NatsConnection | None",
    events: EventDestination | None,
    signers: SignerView,
    sealer: CallbackSealer,
    tracer: AttemptTracer | None,
) -> Destination:
    """The destination of callbacks of all types. With a `tracer` attempts have spans."""
    destinations: dict[type[Callback], Destination] = {HttpCallback: http}
    if nats is not None:
        from duetime.delivery.nats import NatsDestination

        destinations[NatsCallback] = NatsDestination(
            nats, clock, callback_timeout_ms(settings), signers=signers
        )
    if events is not None:
        destinations[BusCallback] = events
    unavailable: dict[type[Callback], str] = {
        NatsCallback: "'nats' needs a NATS server: set NATS_URL or NATS_HOST",
        BusCallback: "'bus' needs a broker: set TIMER_BROKER_URL",
    }
    router = DestinationRouter(destinations, unavailable, clock, sealer)
    return router if tracer is None else TracedDestination(router, tracer, clock)


def callback_timeout_ms(settings: Settings) -> int:
    return round(settings.callback_timeout_seconds * 1_000)


def _proxy(settings: Settings) -> HttpProxy | None:
    given = settings.callback_proxy
    if given is None:
        return None
    authorization = None
    if given.user is not None:
        credentials = f"{given.user}:{given.password}".encode()
        authorization = b"Basic " + base64.b64encode(credentials)
    return HttpProxy(given.host, given.port, authorization, settings.judges_callbacks)
