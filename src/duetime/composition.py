"""Where the adapters meet the core: the one place that knows them all."""

import gc
import os
import secrets
import socket
import sys
from typing import TYPE_CHECKING, assert_never

import structlog
from msgspec.structs import asdict, replace
from starlette.types import ASGIApp

from duetime import __version__
from duetime.api.app import ApiRules, Services, create_app
from duetime.api.platform.health import EngineHealth
from duetime.api.platform.types import BusStatus, ClusterStatus, NatsStatus
from duetime.api.v1.endpoints import NodeEndpoints
from duetime.bus.asyncapi import asyncapi_document
from duetime.bus.brokers import bus_of, nats_connection
from duetime.bus.bus_router import BusRouter
from duetime.bus.events import EventDestination
from duetime.clock import SystemClock
from duetime.delivery.destination_router import DestinationRouter
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.domain.errors import Unavailable
from duetime.engine import Cluster, Engine, EngineOptions
from duetime.local_process import is_gone, process_name
from duetime.ports.destination import Destination
from duetime.ports.membership import NodeFacts
from duetime.service.bus_scheduling import Scheduling
from duetime.service.create_batcher import CreateBatcher
from duetime.service.namespaces import KnownNamespaces, NamespaceRefresher, Namespaces
from duetime.service.redriving import Redriving
from duetime.service.timer_service import TimerService
from duetime.service.validation import TimerRules
from duetime.settings import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
)
from duetime.stores.memory import MemoryStore
from duetime.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from duetime.stores.postgres import PostgresOptions, PostgresStore

_log = structlog.get_logger()

SWITCH_INTERVAL_SECONDS = 0.00001
"""How long a thread that holds the interpreter lets another one wait. The store's writer needs
it briefly, a few times per commit; Python's five milliseconds would cap commits at 200 a second."""

GARBAGE_THRESHOLD = 50_000
"""New containers before the collector looks for cycles. Requests and deliveries make none that
matter; Python's 700 would have it look hundreds of times a second."""

ANY_ADDRESS = ("0.0.0.0", "::")

SHORTEST_PARTITION_SECONDS = 3_600
LONGEST_PARTITION_SECONDS = 30 * 86_400


class Duetime:
    """One service process: store, engine and API, put together from settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._store = _store(settings)
        self._options = _engine_options(settings, self._clock)
        self._nats = None if settings.nats is None else nats_connection(settings.nats)
        self._bus = (
            None if settings.broker is None else bus_of(settings.broker, self._options.owner)
        )
        self._events = None if self._bus is None else EventDestination(self._bus, self._clock)
        self._destination = self._make_destination()
        known = KnownNamespaces()
        self._engine = Engine(
            self._store,
            self._store,
            self._destination,
            self._clock,
            self._options,
            _cluster(settings, self._store, self._clock),
            known,
        )
        self._namespaces = Namespaces(self._store, known, self._engine.own_new_shards)
        self._namespace_refresher = NamespaceRefresher(self._namespaces, self._clock)
        self._creates = CreateBatcher(self._store, self._engine)
        self._bus_router = self._make_bus_router()
        self.app: ASGIApp = create_app(
            services=self._services(),
            store=self._store,
            clock=self._clock,
            health=self._engine_health,
            endpoints=lambda: NodeEndpoints(self._engine.node, self._engine.endpoints()),
            api_key=settings.api_key,
            asyncapi=asyncapi_document(),
            rules=ApiRules(
                max_body_bytes=settings.max_body_bytes,
                callback_timeout_ms=round(settings.callback_timeout_seconds * 1_000),
            ),
        )

    async def start(self) -> None:
        """Store, NATS, namespaces, bus, engine, in this order. What fails is undone before it is
        raised."""
        _tune_interpreter()
        await self._store.open()
        _log.info("store.opened", database=_name_of(self._settings))
        try:
            await self._connect_to_nats()
            await self._namespaces.add_all(self._settings.namespaces)
            if self._bus_router is not None:
                await self._bus_router.open()
            await self._engine.start()
        except BaseException:
            await self._close()
            raise
        if self._store.capabilities.shared_by_nodes:
            self._namespace_refresher.start()
        if self._bus_router is not None:
            self._bus_router.start()

    async def _connect_to_nats(self) -> None:
        if self._nats is None:
            return
        try:
            await self._nats.connect()
        except Unavailable as error:
            raise Unavailable(f"NATS_URL or NATS_HOST: {error.message}") from None
        _log.info("nats.connected", server=self._nats.display_name)

    async def stop(self) -> None:
        if self._bus_router is not None:
            await self._bus_router.stop()
        await self._namespace_refresher.abandon()
        await self._engine.stop(self._settings.shutdown_grace_seconds)
        await self._close()

    async def _close(self) -> None:
        await self._destination.close()
        if self._bus_router is not None:
            await self._bus_router.close()
        await self._store.close()

    def _make_bus_router(self) -> BusRouter | None:
        if self._bus is None or self._events is None:
            return None
        rules = TimerRules(min_delay_ms=0, past_is_due=True)
        scheduling = Scheduling(
            self._store,
            self._clock,
            self._engine,
            self._destination,
            self._namespaces,
            rules,
            creates=self._creates,
        )
        return BusRouter(self._bus, self._events, scheduling, self._clock)

    def _make_destination(self) -> Destination:
        timeout_ms = round(self._settings.callback_timeout_seconds * 1_000)
        destinations: dict[type[Callback], Destination] = {
            HttpCallback: HttpDestination(HttpClient(), self._clock, timeout_ms)
        }
        if self._nats is not None:
            from duetime.delivery.nats import NatsDestination

            destinations[NatsCallback] = NatsDestination(self._nats, self._clock, timeout_ms)
        if self._events is not None:
            destinations[BusCallback] = self._events
        unavailable: dict[type[Callback], str] = {
            NatsCallback: "'nats' needs a NATS server: set NATS_URL or NATS_HOST",
            BusCallback: "'bus' needs a broker: set TIMER_BROKER_URL",
        }
        return DestinationRouter(destinations, unavailable, self._clock)

    def _services(self) -> Services:
        settings = self._settings
        platform = TimerRules(
            min_delay_ms=round(settings.min_delay_seconds * 1_000),
            callback_timeout_ms=round(settings.callback_timeout_seconds * 1_000),
            max_payload_bytes=settings.max_payload_bytes,
        )
        v1 = replace(platform, min_delay_ms=0, default_retries=True)

        def service(rules: TimerRules) -> TimerService:
            return TimerService(
                self._store,
                self._clock,
                self._engine,
                self._destination,
                self._namespaces,
                rules,
                creates=self._creates,
            )

        return Services(
            platform=service(platform),
            v1=service(v1),
            imports=service(replace(v1, past_is_due=True)),
            redriving=Redriving(self._store, self._clock, self._engine, self._namespaces),
            namespaces=self._namespaces,
        )

    def _engine_health(self) -> EngineHealth:
        return EngineHealth(
            running=self._engine.is_running,
            shards_owned=self._engine.shards_owned,
            lateness_ms=self._engine.lateness_ms(99),
            in_flight=self._engine.in_flight,
            cluster=self._cluster_health(),
            bus=self._bus_health(),
            nats=(
                None
                if self._nats is None
                else NatsStatus(self._nats.display_name, self._nats.is_connected)
            ),
        )

    def _bus_health(self) -> BusStatus | None:
        if self._bus_router is None:
            return None
        return BusStatus(**asdict(self._bus_router.health()))

    def _cluster_health(self) -> ClusterStatus | None:
        engine = self._engine
        if engine.members is None:
            return None
        return ClusterStatus(
            node=engine.node,
            members=engine.members,
            shards=engine.shards,
            clock_offset_ms=engine.clock_watch.offset_ms,
            clock_skewed=engine.clock_watch.is_skewed,
        )


def assemble(settings: Settings) -> Duetime:
    return Duetime(settings)


def _tune_interpreter() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)


def _store(settings: Settings) -> "SqliteStore | MemoryStore | PostgresStore":
    match settings.store:
        case SqliteStoreSettings(path=path):
            return SqliteStore(path)
        case MemoryStoreSettings():
            return MemoryStore()
        case PostgresStoreSettings() as postgres:
            # Imported here, so that those who use SQLite do not wait for the driver.
            from duetime.stores.postgres import PostgresStore

            return PostgresStore(postgres_options(postgres, settings.retention_days))
        case _ as unreachable:
            assert_never(unreachable)


def _cluster(
    settings: Settings, store: "SqliteStore | MemoryStore | PostgresStore", clock: SystemClock
) -> Cluster | None:
    if not isinstance(settings.store, PostgresStoreSettings):
        return None
    from duetime.stores.postgres import PostgresSignals, PostgresStore

    assert isinstance(store, PostgresStore)
    return Cluster(
        members=store,
        signals=PostgresSignals(postgres_options(settings.store, settings.retention_days)),
        is_gone=lambda facts: is_gone(facts.process),
    )


def postgres_options(store: PostgresStoreSettings, retention_days: float) -> "PostgresOptions":
    from duetime.stores.postgres import PostgresOptions

    return PostgresOptions(
        url=store.url,
        schema=store.schema,
        pool_size=store.pool_size,
        statement_timeout_seconds=store.statement_timeout_seconds,
        history_partition_seconds=_history_partition_seconds(retention_days),
    )


def _history_partition_seconds(retention_days: float) -> int:
    """Finished timers go partition by partition, so they stay an eighth too long at most."""
    if retention_days == 0:
        return LONGEST_PARTITION_SECONDS
    eighth = round(retention_days * 86_400 / 8)
    return min(max(eighth, SHORTEST_PARTITION_SECONDS), LONGEST_PARTITION_SECONDS)


def _name_of(settings: Settings) -> str:
    match settings.store:
        case SqliteStoreSettings(path=path):
            return str(path.absolute())
        case MemoryStoreSettings():
            return "memory"
        case PostgresStoreSettings(place=place, schema=schema):
            return f"postgresql://{place}, schema {schema}"
        case _ as unreachable:
            assert_never(unreachable)


def _engine_options(settings: Settings, clock: SystemClock) -> EngineOptions:
    host, pid = socket.gethostname(), os.getpid()
    return EngineOptions(
        # The same pid may come back on the same host, and a node must never be taken for another.
        owner=f"{host}:{pid}:{secrets.token_hex(4)}",
        horizon_ms=settings.claim_horizon_ms,
        poll_seconds=settings.polling_interval_ms / 1_000,
        batch_size=settings.claim_batch_size,
        concurrency=settings.delivery_concurrency,
        concurrency_per_endpoint=settings.delivery_concurrency_per_endpoint,
        retention_seconds=settings.retention_days * 86_400 if settings.retention_days else None,
        lease_seconds=settings.lease_seconds,
        clock_skew_limit_ms=settings.clock_skew_limit_ms,
        facts=NodeFacts(
            host=host,
            pid=pid,
            process=process_name(),
            version=__version__,
            url=f"http://{host if settings.host in ANY_ADDRESS else settings.host}:{settings.port}",
            started_at=clock.now(),
        ),
    )
