"""Running a supervisor, from the reserved address to the last worker's end."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from functools import partial

import structlog

from duetime import __version__
from duetime.clock import SystemClock
from duetime.server.listener import AddressUnavailable, bind, reserve, url_of
from duetime.server.supervisor import Supervisor
from duetime.server.worker_process import UnstartedWorker, Worker, WorkerProcess
from duetime.settings import Settings

log = structlog.get_logger()

STOP_MARGIN_SECONDS = 30.0
"""How much longer than its graces a worker that is replaced may take to stop."""


async def supervise(settings: Settings, options: Sequence[str]) -> signal.Signals | None:
    """Run the workers until a signal stops them; answers the signal that cut this short, if one
    did.

    Raises `AddressUnavailable`, and `WorkerFailed` when the workers cannot start at all.
    """
    with contextlib.closing(reserve(settings.host, settings.port)) as reserved:
        port: int = reserved.getsockname()[1]
        supervisor = Supervisor(
            partial(_launch, address=(settings.host, port), options=options),
            settings.workers,
            SystemClock(),
            # Requests under way have their grace first, callbacks after them.
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
    return signals.cut_short_by


def _launch(
    number: int, replaced: Worker | None, *, address: tuple[str, int], options: Sequence[str]
) -> Worker:
    """A worker on a socket of its own: the system deals out connections among those who listen.

    One that replaces another takes over its socket, with the connections that wait there: were
    it closed, they would be reset.
    """
    try:
        if isinstance(replaced, WorkerProcess) and replaced.listener.fileno() >= 0:
            listener = replaced.listener.dup()
        else:
            listener = bind(*address, shared=True)
        return WorkerProcess(number, listener, options)
    except AddressUnavailable as error:
        return UnstartedWorker(error.message)
    except OSError as error:
        return UnstartedWorker(f"a worker could not be started: {error.strerror}")


class _Signals:
    """SIGTERM and SIGINT stop the workers in order, a second one at once; SIGHUP replaces them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.stopped = asyncio.Event()
        self.cut_short_by: signal.Signals | None = None
        self._supervisor = supervisor
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, supervisor.roll)

    def _stop(self, number: signal.Signals) -> None:
        if self.stopped.is_set():
            self.cut_short_by = number
            self._supervisor.kill()
        else:
            log.info("service.stopping")
            self.stopped.set()
