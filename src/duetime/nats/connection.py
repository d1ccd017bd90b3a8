"""The connection to a NATS server that everything in this process shares."""

import asyncio
from collections.abc import Callable

import structlog
from msgspec import DecodeError, Struct
from msgspec.json import Decoder
from nats.aio.msg import Msg
from nats.errors import Error

from duetime.nats.client import Headers
from duetime.nats.failures import NatsFailure, NatsTimeout
from duetime.nats.options import NatsOptions
from duetime.nats.session import CLOSE_SECONDS, Session
from duetime.nats.session_keeper import SessionKeeper, Subscription
from duetime.network_failures import format_seconds
from duetime.ports.clock import Clock

_log = structlog.get_logger()

NO_RESPONDERS = "503"


class ApiError(Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class PublishAnswer(Struct, frozen=True):
    """A stream's answer to a message: where it is stored, or why not."""

    stream: str = ""
    error: ApiError | None = None


_answer = Decoder(PublishAnswer)


class NatsConnection:
    """Stays connected while it is open. When a connection breaks, every waiting caller fails at
    once, and the next connection is made, however long that takes.

    Nothing is kept for later: a message that cannot be sent now fails now.
    """

    def __init__(self, options: NatsOptions, clock: Clock) -> None:
        self.display_name = options.display_name
        self._options = options
        self._clock = clock
        self._connecting = asyncio.Lock()
        self._subscriptions: list[Subscription] = []
        self._keeper = self._new_keeper()

    def _new_keeper(self) -> SessionKeeper:
        return SessionKeeper(self._options, self._clock, self._subscriptions)

    @property
    def is_connected(self) -> bool:
        return self._keeper.is_connected

    async def connect(self) -> None:
        """Raises `NatsFailure` if connecting fails or takes too long. After the first success the
        connection is kept; later calls only wait until it is up again."""
        async with self._connecting:
            if self.is_connected:
                return
            if self._keeper.is_started:
                try:
                    await self._keeper.wait_until_connected(self._options.connect_timeout_seconds)
                except TimeoutError:
                    raise self._not_connected() from None
                return
            try:
                await self._keeper.connect()
            except NatsFailure as failure:
                raise NatsFailure(
                    f"cannot connect to {self.display_name}: {failure.message}"
                ) from None
            self._keeper.start()

    async def close(self) -> None:
        """Bounded, and never raises."""
        keeper, self._keeper = self._keeper, self._new_keeper()
        await keeper.close()

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Publish without waiting. Whether the message arrives is unknown."""
        self._session().publish(subject, data, None, reply)

    async def publish_flushed(
        self, subject: str, data: bytes, headers: Headers | None, timeout_seconds: float
    ) -> None:
        """Publish, and wait until the server has taken the message, whether or not anyone
        listens."""
        await self._session().publish_flushed(subject, data, headers, timeout_seconds)

    async def publish_stored(
        self, subject: str, data: bytes, headers: Headers | None, timeout_seconds: float
    ) -> None:
        """Publish, and wait until a JetStream stream has stored the message, or already has one
        with the same `Nats-Msg-Id`."""
        try:
            message = await self._session().request(subject, data, headers, timeout_seconds)
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
        return await self._session().request(subject, data, None, timeout_seconds)

    async def flush(self, timeout_seconds: float) -> None:
        """Return when the server has taken everything sent so far."""
        await self._session().flush(timeout_seconds)

    async def subscribe(
        self,
        subject: str,
        on_message: Callable[[Msg], None],
        timeout_seconds: float,
        *,
        on_restart: Callable[[], None] = lambda: None,
    ) -> Subscription:
        """On return the server knows the subscription. Every new connection makes it again and
        then calls `on_restart`."""
        session = self._session()
        subscription = Subscription(subject, on_message, on_restart)
        await subscription.start(session)
        await session.flush(timeout_seconds)
        self._subscriptions.append(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription, *, drain: bool = False) -> None:
        """Never raises. Without a connection the server has forgotten the subscription anyway."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        if not self.is_connected:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await (subscription.drain() if drain else subscription.stop())
        except (Error, OSError) as error:
            _log.debug("nats.not_unsubscribed", server=self.display_name, error=str(error))

    def _session(self) -> Session:
        session = self._keeper.session
        if session is None or not session.is_up:
            raise self._not_connected()
        return session

    def _not_connected(self) -> NatsFailure:
        problem = self._keeper.problem
        return NatsFailure(
            f"not connected to {self.display_name}" + (f": {problem}" if problem else ""),
            lacks=self._keeper.lacks,
        )


def is_status(message: Msg, status: str) -> bool:
    return message.headers is not None and message.headers.get("Status") == status


def _no_acknowledgement(subject: str) -> NatsFailure:
    return NatsFailure(
        f"the listener on {subject} is not a stream: its answer is not an acknowledgement",
        blames_server=False,
    )
