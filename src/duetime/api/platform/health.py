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
    cluster: ClusterStatus | None = None
    """None if no other node can share the store."""
    bus: BusStatus | None = None
    """None if no broker is configured."""
    nats: NatsStatus | None = None
    """None if no NATS server is configured."""


class Health:
    """Healthy means that the store answers in time and the engine runs."""

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
        healthy = connected and engine.running
        data = HealthStatus(
            status="up" if healthy else "degraded",
            database="connected" if connected else "disconnected",
            timestamp=format_instant(self._clock.now()),
            engine=EngineStatus(
                running=engine.running,
                shards_owned=engine.shards_owned,
                lateness_ms=engine.lateness_ms,
                in_flight=engine.in_flight,
                local_shortages=engine.local_shortages,
            ),
            cluster=engine.cluster or UNSET,
            bus=engine.bus or UNSET,
            nats=engine.nats or UNSET,
        )
        if healthy:
            return answer(200, Code.SUCCESS, "healthy", data)
        message = "engine is not running" if connected else "database connection failed"
        return answer(500, Code.UNEXPECTED, message, data)

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
