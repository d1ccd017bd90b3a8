"""The connection to a NATS server that everything in this process shares."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from msgspec import DecodeError, Struct
from msgspec.json import Decoder
from nats.aio.msg import Msg
from nats.errors import Error

from duetime.nats.failure import NatsFailure, NatsTimeout
from duetime.nats.message import Headers
from duetime.nats.options import NatsOptions, ssl_context
from duetime.nats.reconnect_pacing import Steadiness
from duetime.nats.session import CLOSE_SECONDS, Session
from duetime.network_failures import format_seconds

_log = structlog.get_logger()

RECONNECT_WAIT_SECONDS = 0.2
MOST_ADDRESSES = 32
MOST_TOLD_PROBLEMS = 20

NO_RESPONDERS = "503"


class ApiError(Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class PublishAnswer(Struct, frozen=True):
    """What a stream says to a message: where it is stored, or why not."""

    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: ApiError | None = None


_answer = Decoder(PublishAnswer)


class Subscription:
    """Messages of a subject, over all connections to come. `on_message` must be quick."""

    def __init__(self, subject: str, on_message: Callable[[Msg], None]) -> None:
        self.subject = subject
        self._on_message = on_message
        self._current: Any = None

    async def start(self, session: Session) -> None:
        self._current = await session.subscribe(self.subject, self._take)

    async def drain(self) -> None:
        """Return when everything that the server has sent until now has been handed over."""
        if self._current is not None:
            await self._current.drain()

    async def stop(self) -> None:
        if self._current is not None:
            await self._current.unsubscribe()

    async def _take(self, message: Msg) -> None:
        self._on_message(message)


class NatsConnection:
    """Connected for as long as it is open: when the connection breaks, everybody who waits for
    something fails at once, and another one is made, however long that takes.

    Nothing is kept for later. What cannot be sent now fails now.
    """

    def __init__(self, options: NatsOptions) -> None:
        self._options = options
        self.display_name = options.display_name
        self.on_connected: list[Callable[[], None]] = []
        self._session: Session | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._connected = asyncio.Event()
        self._wanted_now = asyncio.Event()
        self._problem = ""
        self._told_problems: set[str] = set()
        self._steadiness = Steadiness()
        self._subscriptions: list[Subscription] = []
        self._addresses = [self.display_name.partition("://")[2]]
        self._attempts = 0
        self._context: tuple[object, ssl.SSLContext | None] | None = None

    @property
    def is_connected(self) -> bool:
        return self._session is not None and self._session.is_up

    async def connect(self) -> None:
        """Raises `NatsFailure` if that takes longer than it may, or cannot be. Once it has worked
        the connection is kept; then this only waits until it is there again."""
        async with self._connecting:
            if self.is_connected:
                return
            if self._keeper is None:
                try:
                    await self._make_session()
                except NatsFailure as failure:
                    raise NatsFailure(
                        f"cannot connect to {self.display_name}: {failure.message}"
                    ) from None
                self.connect_in_background()
                return
            self._wanted_now.set()
            try:
                async with asyncio.timeout(self._options.connect_timeout_seconds):
                    while not self.is_connected:
                        self._connected.clear()
                        await self._connected.wait()
            except TimeoutError:
                raise self._not_connected() from None

    def connect_in_background(self) -> None:
        """For those who can do without a connection for the time being."""
        if self._keeper is None:
            self._keeper = asyncio.ensure_future(self._keep())

    async def close(self) -> None:
        """Bounded, and never raises."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait({keeper}, timeout=CLOSE_SECONDS)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Without waiting for anything: whether it arrives is unknown."""
        self._up().publish(subject, data, None, reply)

    async def publish_flushed(
        self, subject: str, data: bytes, headers: Headers | None, timeout_seconds: float
    ) -> None:
        """Publish and wait until the server has taken the message, whoever listens."""
        await self._up().publish_flushed(subject, data, headers, timeout_seconds)

    async def publish_stored(
        self, subject: str, data: bytes, headers: Headers | None, timeout_seconds: float
    ) -> None:
        """Publish and wait until a JetStream stream has stored the message, or has found that it
        has one of the same `Nats-Msg-Id`."""
        try:
            message = await self._up().request(subject, data, headers, timeout_seconds)
        except NatsTimeout:
            seconds = format_seconds(timeout_seconds)
            raise NatsFailure(
                f"no stream at {self.display_name} said within {seconds} that it stores {subject}"
            ) from None
        if not message.data and is_status(message, NO_RESPONDERS):
            raise NatsFailure(f"no stream stores {subject}", blames_server=False)
        try:
            answer = _answer.decode(message.data)
        except DecodeError:
            raise _no_acknowledgement(subject) from None
        if answer.error is not None:
            raise NatsFailure(
                f"the stream did not store it: {answer.error.description or answer.error.code}",
                blames_server=answer.error.code >= 500,
            )
        if not answer.stream:
            raise _no_acknowledgement(subject)

    async def request(self, subject: str, data: bytes, timeout_seconds: float) -> Msg:
        return await self._up().request(subject, data, None, timeout_seconds)

    async def flush(self, timeout_seconds: float) -> None:
        """Return when the server has taken all that was said so far."""
        await self._up().flush(timeout_seconds)

    async def subscribe(
        self, subject: str, on_message: Callable[[Msg], None], timeout_seconds: float
    ) -> Subscription:
        """On return the server knows of it. It is made again with every connection."""
        session = self._up()
        subscription = Subscription(subject, on_message)
        await subscription.start(session)
        await session.flush(timeout_seconds)
        self._subscriptions.append(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription, *, drain: bool = False) -> None:
        """Never raises: without a connection there is nothing to say."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        if not self.is_connected:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await (subscription.drain() if drain else subscription.stop())
        except (Error, OSError) as error:
            _log.debug("nats.not_unsubscribed", server=self.display_name, error=str(error))

    def _up(self) -> Session:
        session = self._session
        if session is None or not session.is_up:
            raise self._not_connected()
        return session

    def _not_connected(self) -> NatsFailure:
        reason = f": {self._problem}" if self._problem else ""
        return NatsFailure(f"not connected to {self.display_name}{reason}")

    async def _keep(self) -> None:
        # Besides being cancelled it looks itself whether it is wanted: with Python 3.11 the
        # cancellation gets lost when it meets the end of an attempt to connect.
        this = asyncio.current_task()
        while self._keeper is this:
            session = self._session
            if session is not None:
                await self._outlast(session)
            while not await self._try_again():
                if self._keeper is not this:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RECONNECT_WAIT_SECONDS):
                        await self._wanted_now.wait()
                self._wanted_now.clear()
            if session is None:
                _log.info("nats.connected", server=self.display_name)
            elif self._told_problems:
                _log.info("nats.reconnected", server=self.display_name)
            self._told_problems.clear()

    async def _outlast(self, session: Session) -> None:
        """Return when it is time for another one."""
        loop = asyncio.get_running_loop()
        self._problem = await asyncio.shield(session.ended)
        self._steadiness.note_end(session.made_at, loop.time())
        self._tell_problem("nats.disconnected")
        await session.close()
        self._session = None
        if self._steadiness.is_steady:
            self._attempts = 0
        else:
            # Those who want it now have to wait, too: they may want it all the time.
            pause: asyncio.Future[None] = loop.create_future()
            await asyncio.wait({pause}, timeout=self._steadiness.pause_seconds)

    async def _try_again(self) -> bool:
        try:
            await self._make_session()
        except NatsFailure as failure:
            self._problem = failure.message
            self._tell_problem("nats.not_connected")
            return False
        return True

    def _tell_problem(self, event: str) -> None:
        """Once for each reason: there are several attempts a second, maybe for hours."""
        told, now = self._told_problems, asyncio.get_running_loop().time()
        if self._problem in told or len(told) >= MOST_TOLD_PROBLEMS:
            return
        if told or self._steadiness.is_time_to_tell(now):
            told.add(self._problem)
            self._steadiness.note_told(now)
            _log.warning(event, server=self.display_name, reason=self._problem)

    async def _make_session(self) -> None:
        url = self._next_url()
        session = Session(self._options, url, self._ssl_context())
        await session.start()
        try:
            for subscription in tuple(self._subscriptions):
                await subscription.start(session)
        except NatsFailure:
            await session.close()
            raise
        # Servers come and go: those that were told last are the ones to try.
        ours, *others = self._addresses
        known = dict.fromkeys((ours, *session.servers, *others))
        self._addresses = list(known)[:MOST_ADDRESSES]
        self._session = session
        self._problem = ""
        self._connected.set()
        for tell in self.on_connected:
            tell()

    def _next_url(self) -> str:
        """The servers of the cluster take turns, ours first; also when one does not keep us."""
        address = self._addresses[self._attempts % len(self._addresses)]
        self._attempts += 1
        return f"{urlsplit(self._options.url).scheme}://{address}"

    def _ssl_context(self) -> ssl.SSLContext | None:
        """Made anew when a certificate was exchanged, and only then: it takes a while."""
        options = self._options
        files = [options.tls_ca_file, options.tls_cert_file, options.tls_key_file]
        try:
            state = [os.stat(file).st_mtime_ns for file in files if file]
        except OSError:
            state = []
        if self._context is None or self._context[0] != state:
            self._context = (state, ssl_context(options))
        return self._context[1]


def is_status(message: Msg, status: str) -> bool:
    return message.headers is not None and message.headers.get("Status") == status


def _no_acknowledgement(subject: str) -> NatsFailure:
    return NatsFailure(
        f"who listens on {subject} is no stream: the answer is no acknowledgement",
        blames_server=False,
    )
