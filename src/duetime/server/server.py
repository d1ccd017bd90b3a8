"""Running the service behind uvicorn, from the bound socket to the graceful stop."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

import structlog
import uvicorn
from starlette.types import ASGIApp

from duetime import __version__
from duetime.clock import SystemClock
from duetime.server.fast_create import FastCreateProtocol
from duetime.server.listener import take_connections, url_of

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
FIRST_REQUEST_SECONDS = 0.05
"""Time for the first request of a connection that was accepted just before the stop. Without it,
such requests were lost when workers were replaced under load."""

log = structlog.get_logger()


class Service(Protocol):
    """The API to serve, with the store and the engine behind it."""

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
    """Start the service, accept connections, and undo both in reverse order once `stopped` is set.

    Connections are refused, not queued, until the service has started. A service that fails to
    start cleans up after itself and is not stopped. Otherwise it is stopped once every request has
    been answered, or after `grace_seconds`.
    """
    if logs_start:
        on_started = _logged(on_started, url_of(listener))
    server = _Server(service.app, grace_seconds, on_started)
    with contextlib.closing(listener):
        await service.start()
        try:
            if not stopped.is_set():
                take_connections(listener, BACKLOG)
                stopping = asyncio.create_task(_stop_when(stopped, server))
                try:
                    await server.serve(sockets=[listener])
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
    is stopped."""

    def __init__(self, app: ASGIApp, grace_seconds: float, on_started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=FastCreateProtocol,
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
        self._on_started = on_started

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
