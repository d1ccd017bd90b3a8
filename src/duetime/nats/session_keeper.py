"""Keeps one session with the NATS server open, and makes the next when it ends."""

import asyncio
import os
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import structlog
from nats.aio.msg import Msg

from duetime.background import BackgroundLoop
from duetime.nats.failures import NatsFailure
from duetime.nats.options import NatsOptions, ssl_context
from duetime.nats.reconnect_pacing import ReconnectPacing
from duetime.nats.session import CLOSE_SECONDS, Session
from duetime.ports.clock import Clock

_log = structlog.get_logger()

RECONNECT_WAIT_SECONDS = 0.2
MAX_ADDRESSES = 32
MAX_LOGGED_PROBLEMS = 20


class Subscription:
    """Messages of one subject, over all sessions to come.

    `on_message` must be quick. `on_restart` is called for every session after the first.
    """

    def __init__(
        self, subject: str, on_message: Callable[[Msg], None], on_restart: Callable[[], None]
    ) -> None:
        self.subject = subject
        self.on_restart = on_restart
        self._on_message = on_message
        self._current: Any = None

    async def start(self, session: Session) -> None:
        self._current = await session.subscribe(self.subject, self._take)

    async def drain(self) -> None:
        """Return when every message that the server has sent so far is handed over."""
        if self._current is not None:
            await self._current.drain()

    async def stop(self) -> None:
        if self._current is not None:
            await self._current.unsubscribe()

    async def _take(self, message: Msg) -> None:
        self._on_message(message)


class SessionKeeper(BackgroundLoop):
    """Makes sessions for as long as it runs, however long the server is away.

    `problem` says why there is no session, and `lacks` which resource this process lacked. Each
    session restarts the `subscriptions` of that time.
    """

    name = "nats-session"

    def __init__(
        self, options: NatsOptions, clock: Clock, subscriptions: Iterable[Subscription]
    ) -> None:
        super().__init__(clock)
        self.session: Session | None = None
        self.problem = ""
        self.lacks: str | None = None
        self._options = options
        self._subscriptions = subscriptions
        self._server = options.display_name
        self._connected = asyncio.Event()
        self._was_connected = False
        self._logged_problems: set[str] = set()
        self._pacing = ReconnectPacing()
        self._addresses = [self._server.partition("://")[2]]
        self._attempts = 0
        self._context: tuple[object, ssl.SSLContext | None] | None = None

    @property
    def is_connected(self) -> bool:
        return self.session is not None and self.session.is_up

    @property
    def is_started(self) -> bool:
        return self._task is not None

    async def connect(self) -> None:
        """Make the first session, before `start`. Raises `NatsFailure`."""
        await self._make_session()
        self._was_connected = True

    async def wait_until_connected(self, timeout_seconds: float) -> None:
        """Try now instead of after the pause. Raises `TimeoutError`."""
        self.wake()
        async with asyncio.timeout(timeout_seconds):
            while not self.is_connected:
                self._connected.clear()
                await self._connected.wait()

    async def close(self) -> None:
        """Bounded, and never raises. A step that does not end when canceled is left behind."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.abandon()
        if self.session is not None:
            await self.session.close()

    async def step(self) -> None:
        if self.session is not None:
            await self._outlast(self.session)
        try:
            await self._make_session()
        except NatsFailure as failure:
            self.problem, self.lacks = failure.message, failure.lacks
            self._log_problem("nats.not_connected")
            await self.wait(RECONNECT_WAIT_SECONDS)
            return
        if not self._was_connected:
            _log.info("nats.connected", server=self._server)
        elif self._logged_problems:
            _log.info("nats.reconnected", server=self._server)
        self._was_connected = True
        self._logged_problems.clear()

    async def _outlast(self, session: Session) -> None:
        """Return when it is time for the next session."""
        self.problem = await asyncio.shield(session.ended)
        self._pacing.note_end(session.connected_at, asyncio.get_running_loop().time())
        self._log_problem("nats.disconnected")
        await session.close()
        self.session = None
        if self._pacing.is_steady:
            self._attempts = 0
        else:
            # Not ended by `wait_until_connected`, which callers may call all the time.
            await self._clock.sleep(self._pacing.pause_seconds)

    def _log_problem(self, event: str) -> None:
        """Log each reason once: there are several attempts a second, maybe for hours."""
        logged, now = self._logged_problems, asyncio.get_running_loop().time()
        if self.problem in logged or len(logged) >= MAX_LOGGED_PROBLEMS:
            return
        if logged or self._pacing.is_time_to_log(now):
            logged.add(self.problem)
            self._pacing.note_logged(now)
            _log.warning(event, server=self._server, reason=self.problem)

    async def _make_session(self) -> None:
        session = Session(self._options, self._next_url(), self._ssl_context())
        await session.start()
        subscriptions = tuple(self._subscriptions)
        try:
            for subscription in subscriptions:
                await subscription.start(session)
        except NatsFailure:
            await session.close()
            raise
        # Servers come and go, so the addresses announced last are tried first, after ours.
        ours, *others = self._addresses
        known = dict.fromkeys((ours, *session.servers, *others))
        self._addresses = list(known)[:MAX_ADDRESSES]
        self.session = session
        self.problem, self.lacks = "", None
        self._connected.set()
        for subscription in subscriptions:
            subscription.on_restart()

    def _next_url(self) -> str:
        """The servers of the cluster in turn, ours first. A server that soon drops us has had
        its turn."""
        address = self._addresses[self._attempts % len(self._addresses)]
        self._attempts += 1
        return f"{urlsplit(self._options.url).scheme}://{address}"

    def _ssl_context(self) -> ssl.SSLContext | None:
        """Built again only after a certificate was replaced, because building is slow."""
        options = self._options
        files = [options.tls_ca_file, options.tls_cert_file, options.tls_key_file]
        try:
            state = [os.stat(file).st_mtime_ns for file in files if file]
        except OSError:
            state = []
        if self._context is None or self._context[0] != state:
            self._context = (state, ssl_context(options))
        return self._context[1]
