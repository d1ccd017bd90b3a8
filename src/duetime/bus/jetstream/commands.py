"""Pulls commands from a JetStream consumer."""

import asyncio
import secrets
from collections import deque
from collections.abc import Sequence

import msgspec
from nats.aio.msg import Msg

from duetime.bus.jetstream.api import API_SECONDS
from duetime.bus.jetstream.setup import CONSUMER, CommandSource
from duetime.bus.jetstream.stream_requirements import ConsumerSettings
from duetime.domain.errors import BusUnavailable
from duetime.nats import NatsConnection
from duetime.nats.connection import NO_RESPONDERS
from duetime.nats.session_keeper import Subscription
from duetime.ports.bus import Channel, ReceivedCommand

LINGER_SECONDS = 0.01
"""Time to wait for further commands that the server has. Other nodes may get them."""

GRACE_SECONDS = 1.0
"""Delay with which the server may report that a request has expired."""

MIN_EXPIRES_SECONDS = 0.02

_NANOSECONDS = 1_000_000_000
_FRESH_FRACTION = 0.7
"""Age up to which a buffered command is handed out, as a fraction of the redelivery time."""

_RECEIPT = "$JS.ACK."
_EXPIRED = frozenset({"404", "408"})
_HEARTBEAT = "100"


class CommandPull:
    """Requests as many commands from the server as a caller waits for, and buffers arrivals.

    A request stays open until it is fulfilled or expires, and its remainder serves the next
    caller. So no more commands are on their way than requested, and an idle node attracts none.
    """

    def __init__(self, connection: NatsConnection, source: CommandSource) -> None:
        self._connection = connection
        self._stream = source.stream
        self._consumer = source.consumer
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._subscription: Subscription | None = None
        self._buffer: deque[tuple[float, ReceivedCommand]] = deque()
        self._news = asyncio.Event()
        self._more_at_server = False
        self._requested = 0
        self._open_requests = 0
        self._requested_until = 0.0
        self._problem: str | None = None

    @property
    def stream(self) -> str:
        return self._stream

    def use(self, consumer: ConsumerSettings) -> None:
        """Keep to the limits of this consumer from now on."""
        self._consumer = consumer

    async def start(self) -> None:
        """Raises `NatsFailure`."""
        self._subscription = await self._connection.subscribe(
            self._inbox, self._take, API_SECONDS, on_restart=self._forget_requests
        )

    async def stop(self) -> list[ReceivedCommand]:
        """Request nothing more. Returns the commands that were not handed out."""
        if self._subscription is not None:
            await self._connection.unsubscribe(self._subscription, drain=True)
        left = [command for _, command in self._buffer]
        self._buffer.clear()
        return left

    async def receive(self, limit: int, wait_seconds: float) -> Sequence[ReceivedCommand]:
        """Raises `NatsFailure` or `BusUnavailable`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + max(wait_seconds, MIN_EXPIRES_SECONDS)
        self._drop_old(loop.time())
        while not self._buffer:
            left_seconds = until - loop.time()
            if left_seconds <= 0:
                return ()
            await self._request(limit, left_seconds)
            await self._wait_for_news(left_seconds)
        while len(self._buffer) < limit and self._more_at_server:
            await self._request(limit, max(until - loop.time(), MIN_EXPIRES_SECONDS))
            if not await self._wait_for_news(LINGER_SECONDS):
                break
        taken = min(limit, len(self._buffer))
        return [self._buffer.popleft()[1] for _ in range(taken)]

    async def _request(self, limit: int, expires_seconds: float) -> None:
        self._raise_problem()
        now = asyncio.get_running_loop().time()
        if now > self._requested_until + GRACE_SECONDS:
            # The server lost our requests, or its answers were lost.
            self._requested = 0
        if self._requested == 0:
            self._open_requests = 0
        missing = limit - self._requested - len(self._buffer)
        most, most_waiting = self._consumer.max_batch, self._consumer.max_waiting
        if most > 0:
            missing = min(missing, most)
        if missing <= 0 or 0 < most_waiting <= self._open_requests:
            return
        expires_seconds = max(expires_seconds, MIN_EXPIRES_SECONDS)
        if self._consumer.max_expires > 0:
            expires_seconds = min(expires_seconds, self._consumer.max_expires / _NANOSECONDS)
        request = {"batch": missing, "expires": int(expires_seconds * _NANOSECONDS)}
        await self._connection.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{CONSUMER}",
            msgspec.json.encode(request),
            reply=self._inbox,
        )
        self._requested += missing
        self._open_requests += 1
        self._requested_until = max(self._requested_until, now + expires_seconds)

    async def _wait_for_news(self, within_seconds: float) -> bool:
        """Whether a command, or news about our requests, arrived in time."""
        self._news.clear()
        try:
            async with asyncio.timeout(within_seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _take(self, message: Msg) -> None:
        if message.reply.startswith(_RECEIPT):
            order, pending = _read_receipt(message.reply)
            if message.subject == Channel.COMMANDS:
                command = ReceivedCommand(
                    data=message.data,
                    order=order,
                    receipt=message.reply,
                    traceparent=_traceparent(message.headers),
                )
                self._buffer.append((asyncio.get_running_loop().time(), command))
            self._requested = max(0, self._requested - 1)
            self._more_at_server = pending > 0
        else:
            self._take_status(message)
        self._news.set()

    def _take_status(self, message: Msg) -> None:
        headers = message.headers or {}
        status = headers.get("Status", "")
        if status in _EXPIRED:
            left = headers.get("Nats-Pending-Messages", "")
            self._requested = max(0, self._requested - int(left)) if left.isdecimal() else 0
            self._more_at_server = False
        elif status == NO_RESPONDERS:
            self._problem = f"the consumer {CONSUMER} of {self._stream} is gone"
        elif status != _HEARTBEAT:
            reason = headers.get("Description", "") or f"status {status}"
            self._problem = f"the consumer {CONSUMER} of {self._stream}: {reason.lower()}"

    def _forget_requests(self) -> None:
        """The server forgets our requests when the connection ends."""
        self._requested = 0
        self._news.set()

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            self._requested = 0
            raise BusUnavailable(f"{self._connection.display_name}: {problem}")

    def _drop_old(self, now: float) -> None:
        """Drop commands that the server is about to hand over to another node."""
        fresh_seconds = self._consumer.ack_wait / _NANOSECONDS * _FRESH_FRACTION
        while self._buffer and self._buffer[0][0] < now - fresh_seconds:
            self._buffer.popleft()


def _read_receipt(reply: str) -> tuple[int, int]:
    """The time at which the stream stored the message, in nanoseconds, and the number of messages
    not yet handed over. Newer servers prepend their domain and account."""
    parts = reply.split(".")
    return (int(parts[7]), int(parts[8])) if len(parts) == 9 else (int(parts[9]), int(parts[10]))


def _traceparent(headers: dict[str, str] | None) -> bytes | None:
    text = None if headers is None else headers.get("traceparent")
    return None if text is None else text.encode(errors="replace")
