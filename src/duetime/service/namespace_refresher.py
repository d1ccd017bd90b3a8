"""Keeps the namespaces up to date where several nodes share a store."""

import asyncio

import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.ports.clock import Clock
from duetime.service.namespaces import Namespaces

_log = structlog.get_logger()

INTERVAL_SECONDS = 5.0
"""How long an option that was changed on one node may go unnoticed on the others."""


class NamespaceRefresher:
    """Looks at the store every few seconds. One that is away is told of once, and looked at
    again: what was known stays known."""

    def __init__(self, namespaces: Namespaces, clock: Clock) -> None:
        self._namespaces = namespaces
        self._clock = clock
        self._is_failing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="namespace-refresher")

    async def stop(self) -> None:
        """A look that is under way is given up; it changes nothing in the store."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(INTERVAL_SECONDS)
            try:
                await self._namespaces.refresh()
            except StoreUnavailable as error:
                if not self._is_failing:
                    _log.warning("namespaces.not_refreshed", error=error.message)
                self._is_failing = True
            except Exception:
                _log.exception("namespaces.refresh_failed")
            else:
                if self._is_failing:
                    _log.info("namespaces.refreshed")
                self._is_failing = False
