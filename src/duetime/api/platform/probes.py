"""Probes of orchestrators: whether the process works, and whether it should get requests."""

import asyncio
from collections.abc import Callable

import structlog
from starlette.types import Receive, Scope

from duetime.api.http.answers import RETRY_LATER, Answer
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.platform.envelope import Code, answer
from duetime.api.platform.health import EngineHealth
from duetime.domain.errors import StoreUnavailable
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore

ASK_SECONDS = 1.0
"""Time for which an answer of the store holds. Probes need no key, so a flood of them must not
become a flood of questions to the store."""

ALIVE = answer(200, Code.SUCCESS, "alive", None)

_log = structlog.get_logger()


class Probes:
    """A process is alive while it answers at all. It is ready once it has started, until it is told
    to stop, while its store answers and its engine runs."""

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        engine: Callable[[], EngineHealth],
        lifecycle: Lifecycle,
        ping_timeout_seconds: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._engine = engine
        self._lifecycle = lifecycle
        self._ping_timeout_seconds = ping_timeout_seconds
        self._asking: asyncio.Task[bool] | None = None
        self._asked_at = 0.0

    async def alive(self, scope: Scope, receive: Receive) -> Answer:
        return ALIVE

    async def ready(self, scope: Scope, receive: Receive) -> Answer:
        return await self.readiness()

    async def readiness(self) -> Answer:
        problem = await self._problem()
        if problem is None:
            return answer(200, Code.SUCCESS, "ready", None)
        return answer(503, Code.UNEXPECTED, problem, None, RETRY_LATER)

    async def _problem(self) -> str | None:
        if self._lifecycle.is_draining:
            return "stopping"
        if not self._lifecycle.is_started:
            return "starting"
        if not await asyncio.shield(self._store_answers()):
            return "the store does not answer"
        return None if self._engine().running else "the engine is not running"

    def _store_answers(self) -> "asyncio.Task[bool]":
        """The question under way, or the last one if it was asked a moment ago, or a new one."""
        now = self._clock.monotonic()
        is_old = now - self._asked_at >= ASK_SECONDS
        if self._asking is None or (self._asking.done() and is_old):
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask())
        return self._asking

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(self._ping_timeout_seconds):
                await self._store.ping()
        except (StoreUnavailable, TimeoutError) as error:
            _log.warning("api.store_unreachable", reason=str(error) or "no answer in time")
            return False
        return True
