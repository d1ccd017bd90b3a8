"""One service process: its parts, started and stopped in order."""

from typing import TYPE_CHECKING

import structlog

from duetime.api.app import App
from duetime.bus.bus_router import BusRouter
from duetime.clock import SystemClock
from duetime.domain.errors import StoreUnreachable, Unavailable
from duetime.engine import Engine
from duetime.event_loop import tune_interpreter
from duetime.ports.destination import Destination
from duetime.ports.store import TimerStore
from duetime.reports.loop_lag import LoopLag
from duetime.reports.reporting import Reporting
from duetime.reports.scrapes import Scrapes
from duetime.reports.store_metrics import StoreWatch
from duetime.server.door import Door
from duetime.service.bulk.runner import BulkRunner
from duetime.service.endpoints.endpoints import PauseWatch
from duetime.service.namespaces import NamespaceRefresher, Namespaces
from duetime.service.reporting.objectives import LAST_WRITE_SECONDS as LAST_COUNT_SECONDS
from duetime.service.reporting.objectives import Objectives
from duetime.service.security.audit_log import AuditLog
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_uses import LAST_WRITE_SECONDS, KeyUses
from duetime.service.security.sessions import Sessions
from duetime.service.security.webhook_secrets import WebhookSecrets
from duetime.settings import Settings
from duetime.store_adapters import store_name
from duetime.web.web_ui import WebUi

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection
    from duetime.telemetry.traces.spans import Spans

_log = structlog.get_logger()

STORE_RETRY_SECONDS = 0.5
"""Pause between two tries to reach the store at the start."""


class Duetime:
    """The parts of a service process, as `composition.assemble` puts them together."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: TimerStore,
        nats: "NatsConnection | None",
        destination: Destination,
        engine: Engine,
        namespaces: Namespaces,
        namespace_refresher: NamespaceRefresher,
        credential_watch: CredentialWatch,
        pause_watch: PauseWatch,
        webhook_secrets: WebhookSecrets,
        key_uses: KeyUses,
        sessions: Sessions,
        store_watch: StoreWatch,
        bulk_runner: BulkRunner,
        bus_router: BusRouter | None,
        audit_log: AuditLog,
        objectives: Objectives,
        reporting: Reporting,
        loop_lag: LoopLag,
        scrapes: Scrapes,
        door: Door,
        spans: "Spans | None",
        app: App,
        web: WebUi,
    ) -> None:
        self._settings = settings
        self._store = store
        self._nats = nats
        self._destination = destination
        self._engine = engine
        self._namespaces = namespaces
        self._namespace_refresher = namespace_refresher
        self._credential_watch = credential_watch
        self._pause_watch = pause_watch
        self._webhook_secrets = webhook_secrets
        self._key_uses = key_uses
        self.sessions = sessions
        self._store_watch = store_watch
        self._bulk_runner = bulk_runner
        self._bus_router = bus_router
        self._audit_log = audit_log
        self._objectives = objectives
        self._reporting = reporting
        self._loop_lag = loop_lag
        self._scrapes = scrapes
        self.door = door
        self._spans = spans
        self.app = app
        self._web = web
        app.lifecycle.is_started = False

    async def open(self) -> None:
        """Open the store, waiting for one that cannot be reached yet. A failure is raised after the
        store is closed again."""
        tune_interpreter()
        clock, told = SystemClock(), ""
        give_up_at = clock.monotonic() + self._settings.startup_wait_seconds
        while True:
            try:
                await self._store.open()
            except BaseException as error:
                await self._store.close()
                left_seconds = give_up_at - clock.monotonic()
                if not isinstance(error, StoreUnreachable) or left_seconds <= 0:
                    raise
                if error.message != told:
                    told = error.message
                    _log.warning(
                        "store.waiting",
                        database=store_name(self._settings),
                        reason=error.message,
                        seconds_left=round(left_seconds, 1),
                    )
                await clock.sleep(min(STORE_RETRY_SECONDS, left_seconds))
            else:
                _log.info("store.opened", database=store_name(self._settings))
                return

    async def start(self) -> None:
        """Start NATS, namespaces, the bus and the engine, in this order. A failure is raised after
        everything is closed again, the store too."""
        try:
            await self._connect_to_nats()
            await self._namespaces.add_all(self._settings.namespaces)
            await self._webhook_secrets.seal_again()
            # Before the engine sends anything.
            await self._pause_watch.refresh()
            if self._bus_router is not None:
                await self._bus_router.open()
            await self._engine.start()
        except BaseException:
            await self._close()
            raise
        if self._store.capabilities.shared_by_nodes:
            self._namespace_refresher.start()
            self._pause_watch.start()
        self._loop_lag.start()
        self._credential_watch.start()
        self._key_uses.start()
        self._objectives.start()
        self._store_watch.start()
        self._reporting.start()
        self._bulk_runner.start()
        self._web.start()
        if self._bus_router is not None:
            self._bus_router.start()
        await self._scrapes.listen()
        self.app.lifecycle.is_started = True

    async def _connect_to_nats(self) -> None:
        if self._nats is None:
            return
        try:
            await self._nats.connect()
        except Unavailable as error:
            raise Unavailable(f"NATS_URL or NATS_HOST: {error.message}") from None
        _log.info("nats.connected", server=self._nats.display_name)

    def drain(self) -> None:
        self.app.drain()
        self._web.drain()

    async def stop(self) -> None:
        if self._bus_router is not None:
            await self._bus_router.stop()
        self._web.drain()
        await self._web.stop()
        await self._namespace_refresher.abandon()
        await self._credential_watch.abandon()
        await self._pause_watch.abandon()
        await self._key_uses.stop_within(LAST_WRITE_SECONDS)
        await self._store_watch.abandon()
        await self._reporting.abandon()
        clock = SystemClock()
        end_seconds = clock.monotonic() + self._settings.shutdown_grace_seconds
        # Before the engine hands over its shards: the next owner goes on with the written progress.
        await self._bulk_runner.stop_within(self._settings.shutdown_grace_seconds)
        await self._engine.stop(max(end_seconds - clock.monotonic(), 0))
        await self._objectives.stop_within(LAST_COUNT_SECONDS)
        await self._audit_log.close()
        await self._close()

    async def _close(self) -> None:
        await self._loop_lag.abandon()
        self._scrapes.close()
        await self._destination.close()
        if self._bus_router is not None:
            await self._bus_router.close()
        await self._store.close()
        if self._spans is not None:
            await self._spans.stop()
