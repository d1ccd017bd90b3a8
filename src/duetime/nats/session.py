"""One connection to a NATS server, from start to end."""

import asyncio
import re
import secrets
import ssl
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from duetime.nats.client import (
    Headers,
    SessionClient,
    format_headers,
    format_message,
    unquote,
)
from duetime.nats.failures import NatsFailure, connecting_problem, ending_problem, timed_out
from duetime.nats.options import NatsOptions, UserCredentials
from duetime.network_failures import scarce_resource

_log = structlog.get_logger()

PONG_SECONDS = 10
"""Time that a server may take to answer a PING before the connection is dropped."""

MAX_UNANSWERED_PINGS = 2
"""Unanswered PINGs allowed before the connection is dropped."""

LATE_SECONDS = 0.1
"""Lateness of a timeout that shows that this process stood still."""

READING_SECONDS = 0.5
"""Time to read what arrived while this process stood still."""

CLOSE_SECONDS = 1
MAX_REFUSED_KINDS = 100

_REFUSED = re.compile(r'permissions violation for (publish|subscription)[^"]*"((?:[^"\\]|\\.)*)"')

Handler = Callable[[Msg], Awaitable[None]]
ResultT = TypeVar("ResultT")


class Session:
    """Never reconnects; `SessionKeeper` makes the next session. So no message waits in the
    library's buffers: whatever the server has not taken when the connection ends fails at once.

    `ended` is done when the connection is over, and says why. `connected_at` is in the event
    loop's time.
    """

    def __init__(self, options: NatsOptions, url: str, context: ssl.SSLContext | None) -> None:
        self._options = options
        self._url = url
        self._context = context
        self._server = options.display_name
        self._was_connected = False
        self.connected_at = 0.0
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._inbox = f"_INBOX.{secrets.token_hex(11)}."
        self._inbox_refused = False
        self._refused_kinds: set[str] = set()
        self._tokens = map(str, count(1))
        self._awaiting_reply: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        self._unflushed: list[tuple[str, asyncio.Future[None]]] = []
        self._being_flushed: list[tuple[str, asyncio.Future[None]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._client = SessionClient(uses_tls=options.uses_tls, on_end=self._end)

    @property
    def is_up(self) -> bool:
        return self._was_connected and not self.ended.done() and self._client.is_connected

    @property
    def servers(self) -> list[str]:
        """The addresses of the cluster's servers, as announced by this one."""
        return [each.netloc.rpartition("@")[2] for each in self._client.servers]

    async def start(self) -> None:
        """Raises `NatsFailure` as soon as connecting has failed."""
        try:
            async with asyncio.timeout(self._options.connect_timeout_seconds):
                await self._connect()
            if not self._client.is_connected:
                raise NatsFailure("connection closed by the server")
            self._was_connected = True
            self.connected_at = self._loop.time()
            await self.subscribe(f"{self._inbox}*", self._take_reply)
        except BaseException as error:
            await self.close()
            if not isinstance(error, Exception):
                raise
            raise self._not_established(error) from None

    async def close(self) -> None:
        """Send what is still queued, then disconnect. Bounded, and never raises."""
        try:
            if self.is_up:
                await self.flush(CLOSE_SECONDS)
        except NatsFailure as failure:
            _log.debug("nats.not_flushed", server=self._server, error=failure.message)
        self._end("the connection was closed")
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._client.close()
        except Exception as error:
            # Any error ends the connection.
            _log.debug("nats.not_closed", server=self._server, error=repr(error))

    def publish(
        self, subject: str, data: bytes, headers: Headers | None = None, reply: str = ""
    ) -> None:
        """Queue a message to be sent soon. Whether it arrives is unknown."""
        self._require_up()
        head = format_headers(headers) if headers else b""
        if len(head) + len(data) > self._client.max_payload:
            raise NatsFailure(
                f"the message is larger than the {self._client.max_payload} bytes that the "
                "server takes",
                blames_server=False,
            )
        self._client.send(format_message(subject, reply, head, data))

    async def publish_flushed(
        self, subject: str, data: bytes, headers: Headers | None, timeout_seconds: float
    ) -> None:
        """Return when the server has taken the message.

        One PONG confirms every message published before its PING. Messages published in the
        meantime share the next PING.
        """
        self.publish(subject, data, headers)
        await self._flushed(subject, timeout_seconds)

    async def flush(self, timeout_seconds: float) -> None:
        """Return when the server has taken everything sent so far."""
        self._require_up()
        await self._flushed("", timeout_seconds)

    async def request(
        self, subject: str, data: bytes, headers: Headers | None, timeout_seconds: float
    ) -> Msg:
        """The first answer, which has status 503 if nobody listens on the subject."""
        if self._inbox_refused:
            raise _refusal("subscription", "")
        token = next(self._tokens)
        future: asyncio.Future[Msg] = self._loop.create_future()
        self._awaiting_reply[token] = (subject, future)
        try:
            self.publish(subject, data, headers, self._inbox + token)
            return await self._within(timeout_seconds, future)
        finally:
            self._awaiting_reply.pop(token, None)

    async def subscribe(self, subject: str, handler: Handler) -> Subscription:
        """The library queues any number of messages for the handler, so a caller that requests
        many must have room for them."""
        try:
            return await self._client.subscribe(
                subject, cb=handler, pending_msgs_limit=0, pending_bytes_limit=0
            )
        except Error as error:
            raise NatsFailure(ending_problem(error)) from None

    async def _connect(self) -> None:
        options = self._options
        credentials = options.credentials_file and UserCredentials(options.credentials_file)
        await self._client.connect(
            self._url,
            name=options.name,
            error_cb=self._take_error,
            allow_reconnect=False,
            connect_timeout=options.connect_timeout_seconds,
            # The library only sleeps for this long, and a fraction of a second works, too.
            ping_interval=options.ping_interval_seconds,  # type: ignore[arg-type]
            max_outstanding_pings=MAX_UNANSWERED_PINGS,
            pending_size=0,
            user=options.user,
            password=options.password,
            user_jwt_cb=credentials.jwt if credentials else None,
            signature_cb=credentials.sign if credentials else None,
            tls=self._context,
            # Servers of a cluster announce their addresses, which are in no certificate.
            tls_hostname=options.host,
        )

    def _require_up(self) -> None:
        if not self.is_up:
            raise NatsFailure(f"not connected to {self._server}")

    def _not_established(self, error: Exception) -> NatsFailure:
        options = self._options
        return NatsFailure(
            connecting_problem(
                error,
                urlsplit(self._url).hostname or "",
                uses_tls=options.uses_tls,
                seconds=options.connect_timeout_seconds,
            ),
            lacks=error.lacks if isinstance(error, NatsFailure) else scarce_resource(error),
        )

    async def _flushed(self, subject: str, timeout_seconds: float) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._unflushed.append((subject, future))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush_all())
        await self._within(timeout_seconds, future)

    async def _flush_all(self) -> None:
        problem = None
        try:
            while self._unflushed and self.is_up and problem is None:
                self._being_flushed, self._unflushed = self._unflushed, []
                problem = await self._flush_once()
        except (OSError, RuntimeError) as error:
            problem = ending_problem(error)
        if problem is not None:
            # `_end` must not cancel this task.
            self._flushing = None
            self._end(problem)

    async def _flush_once(self) -> str | None:
        """Returns the problem of the connection, or None."""
        pong = await self._client.ping()
        due_at = self._loop.time() + PONG_SECONDS
        # Unlike a timeout around the future, this does not cancel it.
        done, _ = await asyncio.wait({pong}, timeout=PONG_SECONDS)
        if not done and self._stood_still(due_at):
            done, _ = await asyncio.wait({pong}, timeout=READING_SECONDS)
        if not done:
            return f"no answer for {PONG_SECONDS} s"
        for _, future in self._being_flushed:
            if not future.done():
                future.set_result(None)
        self._being_flushed = []
        return None

    async def _within(self, timeout_seconds: float, future: "asyncio.Future[ResultT]") -> ResultT:
        # Several times faster than asyncio.timeout, and there may be many.
        due_at = self._loop.time() + timeout_seconds
        timeout = self._loop.call_at(due_at, self._time_out, future, timeout_seconds, due_at)
        try:
            return await future
        finally:
            timeout.cancel()

    def _time_out(
        self, future: "asyncio.Future[Any]", timeout_seconds: float, due_at: float
    ) -> None:
        if future.done():
            return
        if self._stood_still(due_at):
            again_at = self._loop.time() + READING_SECONDS
            self._loop.call_at(again_at, self._give_up, future, timeout_seconds)
        else:
            self._give_up(future, timeout_seconds)

    def _give_up(self, future: "asyncio.Future[Any]", timeout_seconds: float) -> None:
        if not future.done():
            future.set_exception(timed_out(self._server, timeout_seconds))

    def _stood_still(self, due_at: float) -> bool:
        """Whether a timeout that was due at `due_at` comes so late that the answer may have come
        in time and not be read yet."""
        return self._loop.time() - due_at > LATE_SECONDS

    async def _take_reply(self, message: Msg) -> None:
        waiting = self._awaiting_reply.get(message.subject[len(self._inbox) :])
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(message)

    async def _take_error(self, error: Exception) -> None:
        """Raising here stops the library, which would otherwise try to connect forever."""
        if not self._was_connected and not self.ended.done():
            raise self._not_established(error)
        refused = _REFUSED.search(str(error))
        if refused is not None:
            self._refuse(refused[1], unquote(refused[2]))
        elif not isinstance(error, Error | OSError):
            _log.error("nats.message_not_handled", server=self._server, error=repr(error))

    def _refuse(self, what: str, subject: str) -> None:
        """The server does not permit us to publish or subscribe there."""
        kind = f"{what} {'.'.join(subject.split('.')[:2])}"
        if kind not in self._refused_kinds and len(self._refused_kinds) < MAX_REFUSED_KINDS:
            # Logged once, as there may be thousands a second, and bounded, as clients may
            # invent subjects.
            self._refused_kinds.add(kind)
            _log.warning("nats.refused", server=self._server, what=what, subject=subject)
        if what == "subscription":
            self._inbox_refused |= subject == f"{self._inbox}*"
            refused = list(self._awaiting_reply.values()) if self._inbox_refused else []
        else:
            refused = self._refused_by(subject)
        for _, future in refused:
            if not future.done():
                future.set_exception(_refusal(what, subject))

    def _refused_by(self, subject: str) -> "list[tuple[str, asyncio.Future[Any]]]":
        """The waiting messages that a refusal of `subject` may concern.

        A server that renames subjects refuses a message by its new subject. Rather than take a
        refused message for delivered, all messages that no PONG has confirmed fail then. Nobody
        waits for messages on subjects of the server itself, such as acknowledgements.
        """
        unflushed = [*self._unflushed, *self._being_flushed]
        waiting: list[tuple[str, asyncio.Future[Any]]] = [
            *self._awaiting_reply.values(),
            *unflushed,
        ]
        named = [each for each in waiting if each[0] == subject]
        if named or subject.startswith("$"):
            return named
        return [(published, future) for published, future in unflushed if published]

    def _end(self, problem: str | None = None) -> None:
        if self.ended.done():
            return
        problem = problem or ending_problem(self._client.last_error)
        self.ended.set_result(problem)
        waiting: list[tuple[str, asyncio.Future[Any]]] = [
            *self._awaiting_reply.values(),
            *self._unflushed,
            *self._being_flushed,
        ]
        self._unflushed, self._being_flushed = [], []
        for _, future in waiting:
            if not future.done():
                future.set_exception(NatsFailure(f"lost {self._server}: {problem}"))
        if self._flushing is not None:
            self._flushing.cancel()


def _refusal(what: str, subject: str) -> NatsFailure:
    permission = (
        "listen for answers (_INBOX.>)" if what == "subscription" else f"publish on {subject}"
    )
    return NatsFailure(
        f"the server refuses to let us {permission}: permissions violation", blames_server=False
    )
