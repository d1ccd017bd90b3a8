"""The slot of one worker, which holds a running process whenever that is possible."""

import asyncio
from collections.abc import Callable

import structlog

from duetime.domain.errors import DuetimeError, ErrorKind
from duetime.ports.clock import Clock
from duetime.server.worker_process import Ending, Worker, signal_name

log = structlog.get_logger()

Launch = Callable[[int, Worker | None], Worker]
"""Starts the worker with the given number, as the replacement of a serving one if there is one.
Never raises: a worker that cannot be started counts as ended."""

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONG_RUN_SECONDS = 60.0
"""Run time after which a death says nothing about the next start."""


class WorkerFailed(DuetimeError):
    """A worker ended before it ever served. `status` is the exit status to pass on."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, number: int, ending: Ending) -> None:
        super().__init__(ending.error or f"worker {number} {_how(ending)} before it was ready")
        self.status = max(ending.status, 1)


class RestartBackoff:
    """Pauses between restarts: none before the first, then doubling as long as runs are short."""

    def __init__(self) -> None:
        self._next_pause_seconds = 0.0

    def pause_seconds(self, *, ran_seconds: float) -> float:
        """The pause before the next start, after a run of that length."""
        pause_seconds = 0.0 if ran_seconds >= LONG_RUN_SECONDS else self._next_pause_seconds
        self._next_pause_seconds = min(
            max(2 * pause_seconds, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS
        )
        return pause_seconds


class WorkerSlot:
    def __init__(
        self, number: int, launch: Launch, clock: Clock, *, stop_timeout_seconds: float
    ) -> None:
        self._number = number
        self._launch = launch
        self._clock = clock
        self._stop_timeout_seconds = stop_timeout_seconds
        self._backoff = RestartBackoff()
        # Held while one process replaces another.
        self._changing = asyncio.Lock()
        self._worker: Worker
        self._started_at = 0.0

    async def fill(self) -> None:
        """Start the first process and wait until it serves. Raises `WorkerFailed`."""
        if not await self._start():
            raise WorkerFailed(self._number, await self._worker.ended())

    async def keep_filled(self) -> None:
        """Start a new process whenever one dies, forever."""
        while True:
            worker = self._worker
            ending = await worker.ended()
            if worker is not self._worker:
                continue
            ran_seconds = self._clock.monotonic() - self._started_at
            pause_seconds = self._backoff.pause_seconds(ran_seconds=ran_seconds)
            log.error(
                "worker.died",
                worker=self._number,
                pid=worker.pid,
                **ending.facts(),
                ran_seconds=round(ran_seconds, 1),
                restart_in_seconds=pause_seconds,
            )
            await self._clock.sleep(pause_seconds)
            async with self._changing:
                if worker is self._worker:
                    await self._start()

    async def replace(self) -> bool:
        """Start a new process, and stop the current one once the new one serves. If the new one
        fails to start, the current one stays and the result is False."""
        async with self._changing:
            started_at = self._clock.monotonic()
            new = self._launch(self._number, self._worker)
            if not await new.ready():
                ending = await new.ended()
                log.error("worker.not_replaced", worker=self._number, pid=new.pid, **ending.facts())
                return False
            old, self._worker, self._started_at = self._worker, new, started_at
            log.info("worker.started", worker=self._number, pid=new.pid, replaces=old.pid)
        await self._stop(old)
        return True

    async def _start(self) -> bool:
        self._started_at = self._clock.monotonic()
        self._worker = self._launch(self._number, None)
        is_ready = await self._worker.ready()
        if is_ready:
            log.info("worker.started", worker=self._number, pid=self._worker.pid)
        return is_ready

    async def _stop(self, worker: Worker) -> None:
        """Stop the worker; kill it if it far exceeds its own grace period."""
        worker.stop(drains=False)
        try:
            async with asyncio.timeout(self._stop_timeout_seconds):
                await worker.ended()
        except TimeoutError:
            log.error("worker.killed", worker=self._number, pid=worker.pid, reason="did not stop")
            worker.kill()
            await worker.ended()


def _how(ending: Ending) -> str:
    if ending.status < 0:
        return f"was ended by {signal_name(-ending.status)}"
    return f"ended with status {ending.status}"
