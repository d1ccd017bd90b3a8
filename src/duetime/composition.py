"""Where the adapters meet the core: the one place that knows them all."""

import gc
import os
import socket
import sys
from typing import assert_never

import structlog
from starlette.types import ASGIApp

from duetime.api.app import ApiRules, create_app
from duetime.api.health import EngineHealth
from duetime.clock import SystemClock
from duetime.delivery.by_type import DestinationByType
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.keys import DEFAULT_NAMESPACE, Namespace
from duetime.engine import Engine, EngineOptions
from duetime.ports.destination import Destination
from duetime.service.namespaces import Namespaces
from duetime.service.rules import TimerRules
from duetime.service.timer_service import TimerService
from duetime.settings import MemoryStoreSettings, Settings, SqliteStoreSettings
from duetime.stores.memory import MemoryStore
from duetime.stores.sqlite import SqliteStore

_log = structlog.get_logger()

SWITCH_INTERVAL_SECONDS = 0.00001
"""How long a thread that holds the interpreter lets another one wait. The store's writer needs
it briefly, a few times per commit; Python's five milliseconds would cap commits at 200 a second."""

GARBAGE_THRESHOLD = 50_000
"""New containers before the collector looks for cycles. Requests and deliveries make none that
matter; Python's 700 would have it look hundreds of times a second."""


class Duetime:
    """One service process: store, engine and API, put together from settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._store = _store(settings)
        self._destination = _destination(self._clock, settings)
        self._engine = Engine(
            self._store, self._store, self._destination, self._clock, _engine_options(settings)
        )
        self._namespaces = Namespaces(self._store)
        service = TimerService(
            self._store,
            self._clock,
            self._engine,
            self._destination,
            self._namespaces,
            TimerRules(
                min_delay_ms=round(settings.min_delay_seconds * 1_000),
                max_payload_bytes=settings.max_payload_bytes,
            ),
        )
        self.app: ASGIApp = create_app(
            service=service,
            store=self._store,
            clock=self._clock,
            health=self._engine_health,
            api_key=settings.api_key,
            rules=ApiRules(max_body_bytes=settings.max_body_bytes),
        )

    async def start(self) -> None:
        """Store, namespaces, engine, in this order. What fails is undone before it is raised."""
        _tune_interpreter()
        await self._store.open()
        _log.info("store.opened", database=_name_of(self._settings))
        try:
            await self._namespaces.add(Namespace(DEFAULT_NAMESPACE))
            await self._engine.start()
        except BaseException:
            await self._store.close()
            raise

    async def stop(self) -> None:
        await self._engine.stop(self._settings.shutdown_grace_seconds)
        await self._destination.close()
        await self._store.close()

    def _engine_health(self) -> EngineHealth:
        return EngineHealth(
            running=self._engine.is_running,
            shards_owned=self._engine.shards_owned,
            lateness_ms=self._engine.lateness_ms(99),
            in_flight=self._engine.in_flight,
        )


def assemble(settings: Settings) -> Duetime:
    return Duetime(settings)


def _tune_interpreter() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)


def _store(settings: Settings) -> SqliteStore | MemoryStore:
    match settings.store:
        case SqliteStoreSettings(path=path):
            return SqliteStore(path)
        case MemoryStoreSettings():
            return MemoryStore()
        case _ as unreachable:
            assert_never(unreachable)


def _name_of(settings: Settings) -> str:
    store = settings.store
    return str(store.path.absolute()) if isinstance(store, SqliteStoreSettings) else "memory"


def _destination(clock: SystemClock, settings: Settings) -> Destination:
    timeout_ms = round(settings.callback_timeout_seconds * 1_000)
    return DestinationByType(
        {HttpCallback: HttpDestination(HttpClient(), clock, timeout_ms)},
        {
            NatsCallback: "'nats' is not available: this release delivers over HTTP only",
            BusCallback: "'bus' is not available: this release delivers over HTTP only",
        },
        clock,
    )


def _engine_options(settings: Settings) -> EngineOptions:
    return EngineOptions(
        owner=f"{socket.gethostname()}:{os.getpid()}",
        horizon_ms=settings.claim_horizon_ms,
        poll_seconds=settings.polling_interval_ms / 1_000,
        batch_size=settings.claim_batch_size,
        concurrency=settings.delivery_concurrency,
        concurrency_per_endpoint=settings.delivery_concurrency_per_endpoint,
        retention_seconds=settings.retention_days * 86_400 if settings.retention_days else None,
    )
