"""The background loop: starts, survives failures, and stops. Every loop of Duetime is one."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress

import structlog

from duetime.domain.errors import Unavailable
from duetime.ports.clock import Clock

_log = structlog.get_logger()

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
FAILING_FOR_TOO_LONG_SECONDS = 10.0
REMIND_SECONDS = 30.0


class BackgroundLoop(ABC):
    """Takes one step after the other until it is stopped.

    A failed step is logged and taken again after a pause, which doubles with each failure up to
    `longest_pause_seconds`: an absent store or bus must not end the service. `stop` never
    interrupts a step, so that no answer of the store is lost between the store and the loop.

    `woken` ends the waits of the loop. Pass an event that other parts already set; otherwise the
    loop makes its own.
    """

    name: str
    first_pause_seconds: float = FIRST_PAUSE_SECONDS
    longest_pause_seconds: float = LONGEST_PAUSE_SECONDS

    def __init__(self, clock: Clock, woken: asyncio.Event | None = None) -> None:
        self._clock = clock
        self._wake = asyncio.Event() if woken is None else woken
        self._stop_asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pause_seconds = self.first_pause_seconds
        self._failing_since_seconds: float | None = None
        self._reported_at_seconds: float | None = None
        self._absent = ""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    @property
    def is_working(self) -> bool:
        """The loop runs, and its steps have not all failed for a while."""
        running = self._task is not None and not self._task.done()
        since = self._failing_since_seconds
        return running and (
            since is None or self._clock.monotonic() - since < FAILING_FOR_TOO_LONG_SECONDS
        )

    async def stop(self) -> None:
        self._stop_asked.set()
        self._wake.set()
        if self._task is not None:
            await self._task

    async def stop_within(self, seconds: float) -> None:
        """Stop after the step under way, or in the middle of a step that takes longer."""
        self._stop_asked.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)
        await self.abandon()

    async def abandon(self) -> None:
        """Stop in the middle of a step, for loops whose work may be left undone."""
        self._stop_asked.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def wake(self) -> None:
        """End the current or the next `wait`."""
        self._wake.set()

    @abstractmethod
    async def step(self) -> None:
        """Do one piece of work, or wait for some with `wait`."""

    @property
    def _stopping(self) -> bool:
        return self._stop_asked.is_set()

    async def wait(self, seconds: float | None) -> None:
        """Wait until woken or until the time is over."""
        await _set_within(self._wake, seconds)
        self._wake.clear()

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self.step()
            except Unavailable as error:
                self._report_absence(error)
                await self._pause()
            except Exception:
                _log.exception("loop.step_failed", loop=self.name)
                await self._pause()
            else:
                self._pause_seconds = self.first_pause_seconds
                if self._reported_at_seconds is not None:
                    self._report_return()
                self._failing_since_seconds = None

    def _report_absence(self, error: Unavailable) -> None:
        """Log the absence once, and again at intervals: it may last for hours."""
        now_seconds = self._clock.monotonic()
        reported_at = self._reported_at_seconds
        if reported_at is None or now_seconds - reported_at >= REMIND_SECONDS:
            self._reported_at_seconds = now_seconds
            self._absent = error.what
            _log.warning(f"{error.what}.unavailable", loop=self.name, error=error.message)

    def _report_return(self) -> None:
        self._reported_at_seconds = None
        if self._failing_since_seconds is not None:
            away_seconds = round(self._clock.monotonic() - self._failing_since_seconds, 1)
            _log.info(f"{self._absent}.available", loop=self.name, away_seconds=away_seconds)

    async def _pause(self) -> None:
        if self._failing_since_seconds is None:
            self._failing_since_seconds = self._clock.monotonic()
        pause = self._pause_seconds
        self._pause_seconds = min(2 * pause, self.longest_pause_seconds)
        await _set_within(self._stop_asked, pause)


async def _set_within(event: asyncio.Event, seconds: float | None) -> None:
    if not event.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
