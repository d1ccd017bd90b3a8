"""Several workers on one port, kept running by the process that started them."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import structlog

from duetime import __version__
from duetime.clock import SystemClock
from duetime.listener import AddressUnavailable, bind, naming_metrics_port, reserve, url_of
from duetime.ports.clock import Clock
from duetime.server.worker_metrics import metrics_directory
from duetime.server.worker_process import UnstartedWorker, Worker, WorkerProcess
from duetime.server.worker_slot import WorkerFailed, WorkerSlot
from duetime.settings import Settings

log = structlog.get_logger()

STOP_MARGIN_SECONDS = 30.0
"""Time that a replaced worker may take to stop, beyond its own grace periods."""

LaunchProcess = Callable[[int, Worker | None, bool], Worker]
"""Like `Launch`, with whether no other process is there. Only a process that is alone answers
probes while it starts: others would take requests away from those that can serve them."""


async def supervise(settings: Settings, options: Sequence[str]) -> signal.Signals | None:
    """Run the workers until a signal stops them. Returns the second signal if one killed the
    workers before they had stopped.

    Raises `AddressUnavailable`, `MetricsPortUnavailable`, and `WorkerFailed` if the workers cannot
    start at all.
    """
    with (
        contextlib.closing(reserve(settings.host, settings.port)) as reserved,
        _reserved_metrics_port(settings),
        metrics_directory() as directory,
    ):
        port: int = reserved.getsockname()[1]
        supervisor = Supervisor(
            partial(
                _launch,
                address=(settings.host, port),
                options=options,
                metrics_directory=directory,
                workers=settings.workers,
            ),
            settings.workers,
            SystemClock(),
            # Requests under way have their grace period first, then callbacks have theirs.
            stop_timeout_seconds=2 * settings.shutdown_grace_seconds + STOP_MARGIN_SECONDS,
        )
        signals = _Signals(supervisor)
        await supervisor.run_until(
            signals.stopped,
            on_started=lambda: log.info(
                "service.started",
                url=url_of(reserved),
                version=__version__,
                workers=settings.workers,
            ),
        )
    log.info("service.stopped")
    return signals.killed_by


@contextlib.contextmanager
def _reserved_metrics_port(settings: Settings) -> Iterator[None]:
    """Keep the port of the metrics for the workers, if there is one."""
    if settings.metrics_address is None:
        yield
        return
    with naming_metrics_port():
        reserved = reserve(*settings.metrics_address)
    with contextlib.closing(reserved):
        yield


def _launch(
    number: int,
    replaced: Worker | None,
    is_alone: bool,
    *,
    address: tuple[str, int],
    options: Sequence[str],
    metrics_directory: Path | None,
    workers: int,
) -> Worker:
    """A worker with its own socket; the system distributes connections among the sockets.

    A worker that replaces another takes over its socket: closing that socket would reset the
    connections that wait in its queue.
    """
    try:
        if isinstance(replaced, WorkerProcess) and replaced.listener.fileno() >= 0:
            listener = replaced.listener.dup()
        else:
            listener = bind(*address, shared=True)
        return WorkerProcess(
            number,
            listener,
            options,
            is_alone=is_alone,
            metrics_directory=metrics_directory,
            workers=workers,
        )
    except AddressUnavailable as error:
        return UnstartedWorker(error.message)
    except OSError as error:
        return UnstartedWorker(f"a worker could not be started: {error.strerror}")


class Supervisor:
    """Starts the workers, restarts the ones that die, and stops them all.

    Each worker is a member of the cluster like any other process. The supervisor decides nothing
    about timers or shards, and the workers' timers are safe however the supervisor ends.
    """

    def __init__(
        self, launch: LaunchProcess, workers: int, clock: Clock, *, stop_timeout_seconds: float
    ) -> None:
        self._living = _LivingWorkers(launch)
        self._slots = [
            WorkerSlot(
                number, self._living.launch, clock, stop_timeout_seconds=stop_timeout_seconds
            )
            for number in range(1, workers + 1)
        ]
        self._roll_requested = asyncio.Event()

    async def run_until(self, stopped: asyncio.Event, on_started: Callable[[], None]) -> None:
        """Keep the workers running until `stopped`; no worker is left when this returns.

        `on_started` is called once all workers serve. Raises `WorkerFailed` if one ends before
        that: starting it again would fail the same way.
        """
        running = asyncio.create_task(self._run(on_started))
        stopping = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            running.cancel()
            stopping.cancel()
            # No worker may be started after the others have been told to stop.
            await asyncio.wait({running})
            await self._living.stop_all(drains=stopped.is_set())

    def roll(self) -> None:
        """Replace all workers with new processes, one after the other. If a new process cannot
        start, the workers not yet replaced stay."""
        self._roll_requested.set()

    def kill(self) -> None:
        """End all workers at once. Safe, as any crash is."""
        self._living.kill_all()

    async def _run(self, on_started: Callable[[], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                # The first worker starts alone: it detects wrong settings and an unreachable
                # database, and migrates the schema.
                first, *others = self._slots
                await first.fill()
                async with asyncio.TaskGroup() as filling:
                    for slot in others:
                        filling.create_task(slot.fill())
                for slot in self._slots:
                    group.create_task(slot.keep_filled())
                on_started()
                group.create_task(self._roll_on_request())
        except ExceptionGroup as failures:
            # Not `except*`: early releases of Python 3.11 wrap what such a block raises in a group.
            failed, others_failed = failures.split(WorkerFailed)
            if failed is None or others_failed is not None:
                raise
            raise _first_of(failed) from None

    async def _roll_on_request(self) -> None:
        while True:
            await self._roll_requested.wait()
            self._roll_requested.clear()
            log.info("service.rolling", workers=len(self._slots))
            for slot in self._slots:
                if not await slot.replace():
                    log.error("service.roll_abandoned", advice="the other workers stay as they are")
                    break
            else:
                log.info("service.rolled", workers=len(self._slots))


class _LivingWorkers:
    """Every process that was started and has not ended."""

    def __init__(self, launch: LaunchProcess) -> None:
        self._launch = launch
        self._endings: dict[Worker, asyncio.Task[None]] = {}

    def launch(self, number: int, replaced: Worker | None) -> Worker:
        worker = self._launch(number, replaced, not self._endings)
        self._endings[worker] = asyncio.create_task(self._forget_once_ended(worker))
        return worker

    async def stop_all(self, *, drains: bool) -> None:
        for worker in self._endings:
            worker.stop(drains=drains)
        await asyncio.gather(*self._endings.values())

    def kill_all(self) -> None:
        for worker in self._endings:
            worker.kill()

    async def _forget_once_ended(self, worker: Worker) -> None:
        await worker.ended()
        del self._endings[worker]


class _Signals:
    """SIGTERM and SIGINT stop the workers gracefully, and kill them the second time. SIGHUP
    replaces them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.stopped = asyncio.Event()
        self.killed_by: signal.Signals | None = None
        self._supervisor = supervisor
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, supervisor.roll)

    def _stop(self, number: signal.Signals) -> None:
        if self.stopped.is_set():
            self.killed_by = number
            self._supervisor.kill()
        else:
            log.info("service.stopping")
            self.stopped.set()


def _first_of(group: BaseExceptionGroup[WorkerFailed]) -> WorkerFailed:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, WorkerFailed)
    return error
