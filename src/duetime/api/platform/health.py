"""The health of the service."""

import asyncio
from collections.abc import Callable

import structlog
from msgspec import UNSET, Struct
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.platform.envelope import Code, answer
from duetime.api.platform.types import (
    BusStatus,
    ClusterStatus,
    DiskStatus,
    EngineStatus,
    HealthStatus,
    NatsStatus,
)
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import format_instant
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore


class EngineHealth(Struct, frozen=True, kw_only=True):
    """The engine's own report. `lateness_ms` is None if nothing was due in the last minute."""

    running: bool
    shards_owned: int
    lateness_ms: float | None
    in_flight: int
    local_shortages: int = 0
    callbacks_refused: int = 0
    disk: DiskStatus | None = None
    """None if the store cannot see its disk."""
    disk_is_full: bool = False
    """Whether the last write found no room."""
    cluster: ClusterStatus | None = None
    """None if no other node can share the store."""
    bus: BusStatus | None = None
    """None if no broker is configured."""
    nats: NatsStatus | None = None
    """None if no NATS server is configured."""


class Health:
    """Healthy means that the store answers in time and has room, and that the engine runs."""

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        engine: Callable[[], EngineHealth],
        ping_timeout_seconds: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._engine = engine
        self._ping_timeout_seconds = ping_timeout_seconds
        self._pinging: asyncio.Task[bool] | None = None

    async def check(self, scope: Scope, receive: Receive) -> Answer:
        connected = await asyncio.shield(self._ping())
        engine = self._engine()
        problem = _problem(connected, engine)
        data = HealthStatus(
            status="up" if problem is None else "degraded",
            database="connected" if connected else "disconnected",
            timestamp=format_instant(self._clock.now()),
            engine=EngineStatus(
                running=engine.running,
                shards_owned=engine.shards_owned,
                lateness_ms=engine.lateness_ms,
                in_flight=engine.in_flight,
                local_shortages=engine.local_shortages,
                callbacks_refused=engine.callbacks_refused,
            ),
            disk=engine.disk or UNSET,
            cluster=engine.cluster or UNSET,
            bus=engine.bus or UNSET,
            nats=engine.nats or UNSET,
        )
        if problem is None:
            return answer(200, Code.SUCCESS, "healthy", data)
        return answer(500, Code.UNEXPECTED, problem, data)

    def _ping(self) -> "asyncio.Task[bool]":
        """The question under way, or a new one. The check needs no key, so a flood of checks must
        not become a flood of reads."""
        if self._pinging is None or self._pinging.done():
            self._pinging = asyncio.create_task(self._store_answers())
        return self._pinging

    async def _store_answers(self) -> bool:
        try:
            async with asyncio.timeout(self._ping_timeout_seconds):
                await self._store.ping()
        except (StoreUnavailable, TimeoutError) as error:
            structlog.get_logger().warning(
                "api.store_unreachable", reason=str(error) or "no answer in time"
            )
            return False
        return True


def _problem(connected: bool, engine: EngineHealth) -> str | None:
    """The first thing to mend; None if all is well."""
    if not connected:
        return "database connection failed"
    if engine.disk_is_full:
        return "the disk is full: the database cannot be written"
    if engine.disk is not None and engine.disk.short:
        return "the disk is nearly full: nothing new is accepted"
    return None if engine.running else "engine is not running"
