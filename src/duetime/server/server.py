"""Running the service behind uvicorn, from the bound socket to the orderly stop."""

import asyncio
import contextlib
import math
import resource
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

import structlog
import uvicorn
from starlette.types import ASGIApp

from duetime import __version__
from duetime.clock import SystemClock
from duetime.server.fast_create import ExpressProtocol
from duetime.server.listener import take_connections, url_of

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
MAX_OPEN_FILES = 65_536
FIRST_REQUEST_SECONDS = 0.05
"""How long a connection that was let in just before the stop has for its request to arrive.
Without it, such requests were lost when workers were replaced under load."""

log = structlog.get_logger()


class Service(Protocol):
    """What is served: the API, and the store and engine behind it."""

    @property
    def app(self) -> ASGIApp: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


async def serve_until(
    stopped: asyncio.Event,
    service: Service,
    listener: socket.socket,
    *,
    grace_seconds: float,
    on_started: Callable[[], None] = lambda: None,
    logs_start: bool = True,
) -> None:
    """Start the service, let connections in, and on `stopped` undo both in reverse order.

    Connections that come early are refused, not kept waiting. A service that fails to start
    cleans up after itself and is not stopped. The service is stopped only after
    the last request has been answered, or has had `grace_seconds` for it.
    """
    allow_many_connections()
    server = _Server(service.app, grace_seconds)
    with contextlib.closing(listener):
        await service.start()
        try:
            if not stopped.is_set():
                take_connections(listener, BACKLOG)
                stopping = asyncio.create_task(_stop_when(stopped, server))
                try:
                    if logs_start:
                        on_started = _logged(on_started, url_of(listener))
                    await server.run_on(listener, on_started)
                finally:
                    stopping.cancel()
        finally:
            log.info("service.stopping")
            await service.stop()
            log.info("service.stopped")


async def _stop_when(stopped: asyncio.Event, server: uvicorn.Server) -> None:
    await stopped.wait()
    server.should_exit = True


def _logged(on_started: Callable[[], None], url: str) -> Callable[[], None]:
    def log_then_call() -> None:
        log.info("service.started", url=url, version=__version__)
        on_started()

    return log_then_call


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handling, which would end the process before the service
    behind it is stopped."""

    def __init__(self, app: ASGIApp, grace_seconds: float) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=ExpressProtocol,
                proxy_headers=False,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=max(1, math.ceil(grace_seconds)),
            )
        )
        self._on_started: Callable[[], None] = lambda: None

    async def run_on(self, listener: socket.socket, on_started: Callable[[], None]) -> None:
        self._on_started = on_started
        await self.serve(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await SystemClock().sleep(FIRST_REQUEST_SECONDS)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def allow_many_connections() -> None:
    """Raise the soft limit of open files: thousands of callbacks may be under way at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
