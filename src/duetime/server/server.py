"""Running the service behind uvicorn, from the bound socket to the graceful stop."""

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Protocol

import structlog
import uvicorn
from starlette.types import ASGIApp

from duetime import __version__
from duetime.api.http.answers import CLOSE
from duetime.clock import SystemClock
from duetime.descriptors import descriptor_budget
from duetime.listener import naming_metrics_port, take_connections, url_of
from duetime.server.door import Door, api_door, metrics_door
from duetime.server.guarded_protocol import GuardedProtocol

BACKLOG = 2048
FIRST_REQUEST_SECONDS = 0.05
"""Time for the first request of a connection that was accepted just before the stop. Without it,
such requests were lost when workers were replaced under load."""

EARLY_SECONDS = 1.0
"""Time that a start may take before connections are accepted all the same, for probes."""

METRICS_GRACE_SECONDS = 1.0
"""Time that scrapes under way have when the service stops."""

log = structlog.get_logger()


class Service(Protocol):
    """The API to serve, with the store and the engine behind it."""

    @property
    def app(self) -> ASGIApp: ...

    async def open(self) -> None:
        """Open the store, or clean up and raise. May take any time, and be cancelled. Until the end
        of `start` the app answers probes, and refuses other requests."""
        ...

    async def start(self) -> None:
        """Start behind the open store, or clean up, close the store and raise."""
        ...

    def drain(self) -> None:
        """Called when the stop begins, while connections are still served. From now on the app
        says that it is not ready."""
        ...

    async def stop(self) -> None: ...


async def serve_until(
    stopped: asyncio.Event,
    service: Service,
    listener: socket.socket,
    *,
    grace_seconds: float,
    door: Door | None = None,
    drain_seconds: Callable[[], float] = lambda: 0.0,
    answers_early: bool = True,
    on_started: Callable[[], None] = lambda: None,
    logs_start: bool = True,
) -> None:
    """Start the service, accept connections, and undo both in reverse order once `stopped` is set.

    Connections are refused, not queued, until the service has started. If it `answers_early`, they
    are accepted after a moment, however long the start takes; probes are answered then.
    A service that fails to start cleans up after itself and is not stopped. Otherwise it is drained
    for `drain_seconds`, and stopped once every request has been answered, or after `grace_seconds`.
    """
    if logs_start:
        on_started = _logged(on_started, url_of(listener))
    with contextlib.closing(listener):
        server = _Server(service.app, grace_seconds, door or api_door(descriptor_budget()))
        connections = _Connections(server, listener)
        early = connections.serve_early if answers_early else connections.ended
        is_started = False
        try:
            if await _first_of(service.open(), stopped.wait(), early()) == 0:
                is_started = await _first_of(service.start(), early()) == 0
        finally:
            if not is_started:
                await connections.close()
        if not is_started:
            return
        try:
            if not stopped.is_set():
                await connections.serve(on_started)
                await _first_of(stopped.wait(), connections.ended())
                service.drain()
                await connections.drain(drain_seconds())
            await connections.close()
        finally:
            log.info("service.stopping")
            await service.stop()
            log.info("service.stopped")


@contextlib.asynccontextmanager
async def metrics_served(app: ASGIApp, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serve the metrics on a port of their own, if there is a listener for them. Few connections
    have a place there, so that the API does not miss them. Raises `MetricsPortUnavailable`."""
    if listener is None:
        yield
        return
    with contextlib.closing(listener):
        connections = _Connections(_Server(app, METRICS_GRACE_SECONDS, metrics_door()), listener)
        with naming_metrics_port():
            await connections.serve()
        try:
            yield
        finally:
            await connections.close()


async def _first_of(*waits: Coroutine[None, None, object]) -> int:
    """Wait until one of them ends, cancel the others, and wait for their end too. Returns the
    position of the one that ended, or raises its error."""
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = next(number for number, task in enumerate(tasks) if task.done())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    tasks[first].result()
    return first


class _Connections:
    """The connections of clients: not accepted until `serve`, and answered until `close`."""

    def __init__(self, server: "_Server", listener: socket.socket) -> None:
        self._server = server
        self._listener = listener
        self._serving: asyncio.Task[None] | None = None

    async def serve(self, on_serving: Callable[[], None] = lambda: None) -> None:
        """Accept connections, if that has not begun yet. Raises `AddressUnavailable`."""
        if self._serving is None:
            take_connections(self._listener, BACKLOG)
            self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        await _first_of(self._server.is_serving.wait(), self.ended())
        if self._server.is_serving.is_set():
            on_serving()

    async def serve_early(self) -> None:
        """Accept connections in a moment. Returns when connections are not served any more."""
        if self._serving is None:
            await SystemClock().sleep(EARLY_SECONDS)
            await self.serve()
            log.info("service.waiting", url=url_of(self._listener))
        await self.ended()

    async def ended(self) -> None:
        """Wait until connections are not served any more; without end if they never were."""
        await (asyncio.Future() if self._serving is None else asyncio.wait({self._serving}))

    async def drain(self, seconds: float) -> None:
        """Serve on for some time, so that load balancers notice that the service is not ready. Each
        connection ends with its next answer: clients that use it would be cut off otherwise."""
        if seconds:
            log.info("service.draining", seconds=seconds)
            self._server.close_after_answers()
            await _first_of(SystemClock().sleep(seconds), self.ended())

    async def close(self) -> None:
        """Answer the requests under way, and close all connections."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving


def _logged(on_started: Callable[[], None], url: str) -> Callable[[], None]:
    def log_then_call() -> None:
        log.info("service.started", url=url, version=__version__)
        on_started()

    return log_then_call


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handling, which would end the process before the service
    is stopped."""

    def __init__(self, app: ASGIApp, grace_seconds: float, door: Door) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                # Uvicorn only calls it.
                http=partial(GuardedProtocol, door=door),  # type: ignore[arg-type]
                proxy_headers=False,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=max(1, math.ceil(grace_seconds)),
            )
        )
        self.is_serving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_serving.set()

    def close_after_answers(self) -> None:
        # Uvicorn makes the default headers from these once a second.
        self.config.encoded_headers.append(CLOSE)
        self.server_state.default_headers.append(CLOSE)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await SystemClock().sleep(FIRST_REQUEST_SECONDS)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
