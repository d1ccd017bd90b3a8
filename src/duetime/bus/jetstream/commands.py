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
from duetime.nats.connection import NO_RESPONDERS, Subscription
from duetime.ports.bus import Channel, ReceivedCommand

LINGER_SECONDS = 0.01
"""How long to wait for more where the server says that there is more. Another node may get it."""

GRACE_SECONDS = 1.0
"""How much later than announced the server may tell that a request has expired."""

MIN_EXPIRES_SECONDS = 0.02

_NANOSECONDS = 1_000_000_000
_FRESH = 0.7
"""As a part of the time after which the server hands a command over again."""

_RECEIPT = "$JS.ACK."
_EXPIRED = frozenset({"404", "408"})
_HEARTBEAT = "100"


class CommandPull:
    """Asks the server for as many commands as somebody waits for. What arrives goes into a buffer,
    from which it is handed out.

    A request stays open until it is fulfilled or expires, and the next caller is served by what is
    left of it. So no more is on its way than was asked for, and a node that asks for nothing
    attracts nothing.
    """

    def __init__(self, connection: NatsConnection, source: CommandSource) -> None:
        self._connection = connection
        self._stream = source.stream
        self._consumer = source.consumer
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._subscription: Subscription | None = None
        self._buffer: deque[tuple[float, ReceivedCommand]] = deque()
        self._something_came = asyncio.Event()
        self._more_at_server = False
        self._asked = 0
        self._requests = 0
        self._asked_until = 0.0
        self._problem: str | None = None

    @property
    def stream(self) -> str:
        return self._stream

    def heed(self, consumer: ConsumerSettings) -> None:
        """From now on ask for no more than this allows."""
        self._consumer = consumer

    async def start(self) -> None:
        """Raises `NatsFailure`."""
        self._subscription = await self._connection.subscribe(self._inbox, self._take, API_SECONDS)
        self._connection.on_connected.append(self._forget_requests)

    async def stop(self) -> list[ReceivedCommand]:
        """Ask for nothing any more. Answers what arrived and was not handed out."""
        if self._forget_requests in self._connection.on_connected:
            self._connection.on_connected.remove(self._forget_requests)
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
            await self._ask(limit, left_seconds)
            await self._something(left_seconds)
        while len(self._buffer) < limit and self._more_at_server:
            await self._ask(limit, max(until - loop.time(), MIN_EXPIRES_SECONDS))
            if not await self._something(LINGER_SECONDS):
                break
        taken = min(limit, len(self._buffer))
        return [self._buffer.popleft()[1] for _ in range(taken)]

    async def _ask(self, limit: int, expires_seconds: float) -> None:
        self._raise_problem()
        now = asyncio.get_running_loop().time()
        if now > self._asked_until + GRACE_SECONDS:
            # The server has lost our requests, or its answers were lost.
            self._asked = 0
        if self._asked == 0:
            self._requests = 0
        missing = limit - self._asked - len(self._buffer)
        most, most_waiting = self._consumer.max_batch, self._consumer.max_waiting
        if most > 0:
            missing = min(missing, most)
        if missing <= 0 or 0 < most_waiting <= self._requests:
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
        self._asked += missing
        self._requests += 1
        self._asked_until = max(self._asked_until, now + expires_seconds)

    async def _something(self, within_seconds: float) -> bool:
        """Whether anything came: a command, or news about our requests."""
        self._something_came.clear()
        try:
            async with asyncio.timeout(within_seconds):
                await self._something_came.wait()
        except TimeoutError:
            return False
        return True

    def _take(self, message: Msg) -> None:
        if message.reply.startswith(_RECEIPT):
            order, pending = _read_receipt(message.reply)
            if message.subject == Channel.COMMANDS:
                command = ReceivedCommand(data=message.data, order=order, receipt=message.reply)
                self._buffer.append((asyncio.get_running_loop().time(), command))
            self._asked = max(0, self._asked - 1)
            self._more_at_server = pending > 0
        else:
            self._take_status(message)
        self._something_came.set()

    def _take_status(self, message: Msg) -> None:
        headers = message.headers or {}
        status = headers.get("Status", "")
        if status in _EXPIRED:
            left = headers.get("Nats-Pending-Messages", "")
            self._asked = max(0, self._asked - int(left)) if left.isdecimal() else 0
            self._more_at_server = False
        elif status == NO_RESPONDERS:
            self._problem = f"the consumer {CONSUMER} of {self._stream} is gone"
        elif status != _HEARTBEAT:
            reason = headers.get("Description", "") or f"status {status}"
            self._problem = f"the consumer {CONSUMER} of {self._stream}: {reason.lower()}"

    def _forget_requests(self) -> None:
        """The server forgets them with the connection."""
        self._asked = 0
        self._something_came.set()

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            self._asked = 0
            raise BusUnavailable(f"{self._connection.display_name}: {problem}")

    def _drop_old(self, now: float) -> None:
        """What has waited for long is about to be handed over to somebody else."""
        fresh_seconds = self._consumer.ack_wait / _NANOSECONDS * _FRESH
        while self._buffer and self._buffer[0][0] < now - fresh_seconds:
            self._buffer.popleft()


def _read_receipt(reply: str) -> tuple[int, int]:
    """The instant at which the stream stored the message, in nanoseconds, and how many more there
    are that nobody was given yet. Newer servers put their domain and account in front."""
    parts = reply.split(".")
    return (int(parts[7]), int(parts[8])) if len(parts) == 9 else (int(parts[9]), int(parts[10]))
