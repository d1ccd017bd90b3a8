"""The bus on NATS JetStream."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from urllib.parse import quote

import structlog

from duetime.bus.jetstream.api import API_SECONDS
from duetime.bus.jetstream.commands import CommandPull
from duetime.bus.jetstream.setup import NANOSECONDS, CommandSource, count_waiting, set_up, stream_of
from duetime.bus.jetstream.watch import History, Watch
from duetime.domain.errors import BusUnavailable
from duetime.domain.outcome import NotSent
from duetime.nats import NatsConnection, NatsFailure, NatsOptions
from duetime.ports.bus import (
    GIVE_BACK_SECONDS,
    REDELIVER_AFTER_SECONDS,
    Channel,
    OutgoingMessage,
    ReceivedCommand,
)
from duetime.ports.clock import Clock
from duetime.ports.destination import MaySend, always

_log = structlog.get_logger()

PUBLISH_SECONDS = 5.0

_ACKNOWLEDGE = b"+ACK"
_GIVE_BACK = b"-NAK"
_GIVE_BACK_LATER = b'-NAK {"delay": %d}' % (GIVE_BACK_SECONDS * NANOSECONDS)
"""The delay keeps a command that nobody can handle from circulating without pause."""

_HEADER_SAFE = re.compile(r"[!-$&-~]+")
_SAFE_IN_HEADER = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")


class JetStreamBus:
    """Implements the bus port with one stream per channel. All nodes share one durable consumer
    of the commands.

    `redeliver_after_seconds` applies if the consumer has to be created.
    """

    def __init__(
        self,
        options: NatsOptions,
        clock: Clock,
        *,
        redeliver_after_seconds: float = REDELIVER_AFTER_SECONDS,
    ) -> None:
        self._connection = NatsConnection(options, clock)
        self._redeliver_after_seconds = redeliver_after_seconds
        self._opening = asyncio.Lock()
        self._pull: CommandPull | None = None
        self._watches: list[Watch] = []

    @property
    def name(self) -> str:
        return self._connection.display_name

    @property
    def is_connected(self) -> bool:
        return self._connection.is_connected

    async def open(self) -> None:
        async with self._opening:
            try:
                await self._connection.connect()
                source = await set_up(self._connection, self._redeliver_after_seconds)
                if self._pull is not None and self._pull.stream == source.stream:
                    self._pull.use(source.consumer)
                else:
                    await self._start_pull(source)
            except NatsFailure as failure:
                raise BusUnavailable(failure.message) from None

    async def close(self) -> None:
        pull, self._pull = self._pull, None
        if pull is not None:
            await self._return(await pull.stop())
        for watch in self._watches:
            watch.end()
        await self._connection.close()

    async def receive(self, limit: int, wait_seconds: float) -> Sequence[ReceivedCommand]:
        if self._pull is None:
            raise BusUnavailable(f"not connected to {self.name}")
        try:
            return await self._pull.receive(limit, wait_seconds)
        except NatsFailure as failure:
            raise BusUnavailable(failure.message) from None

    async def acknowledge(self, commands: Sequence[ReceivedCommand]) -> None:
        await self._answer(commands, _ACKNOWLEDGE)

    async def give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        await self._answer(commands, _GIVE_BACK_LATER)

    async def count_waiting(self) -> int:
        if self._pull is None:
            raise BusUnavailable(f"not connected to {self.name}")
        return await count_waiting(self._connection, self._pull.stream)

    async def publish(self, message: OutgoingMessage, may_send: MaySend = always) -> None:
        if not may_send():
            raise NotSent
        headers = {
            "Nats-Msg-Id": _for_header(message.id),
            "Partition-Key": _for_header(message.key),
        }
        if message.traceparent is not None:
            headers["traceparent"] = message.traceparent
        try:
            await self._connection.publish_stored(
                message.channel, message.data, headers, PUBLISH_SECONDS
            )
        except NatsFailure as failure:
            raise BusUnavailable(failure.message, lacks=failure.lacks) from None

    async def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        watch = Watch()
        history = await self._history(channel) if last > 0 else None
        newest = 0 if history is None else await history.newest()
        try:
            subscription = await self._connection.subscribe(channel, watch.take, API_SECONDS)
        except NatsFailure as failure:
            raise BusUnavailable(failure.message) from None
        self._watches.append(watch)
        try:
            if history is not None:
                meanwhile = await history.since(newest)
                for message in meanwhile:
                    # Stored while the watch began, which may or may not have received it.
                    watch.drop(message.id, message.data)
                for message in [*await history.last(last, newest), *meanwhile]:
                    yield message.data
            while (data := await watch.next()) is not None:
                yield data
        finally:
            self._watches.remove(watch)
            await self._connection.unsubscribe(subscription)

    async def _history(self, channel: Channel) -> History | None:
        stream = await stream_of(self._connection, channel)
        return None if stream is None else History(self._connection, stream, channel)

    async def _start_pull(self, source: CommandSource) -> None:
        pull = CommandPull(self._connection, source)
        await pull.start()
        before, self._pull = self._pull, pull
        if before is not None:
            await before.stop()

    async def _answer(self, commands: Sequence[ReceivedCommand], answer: bytes) -> None:
        """The server does not confirm. If the answer is lost, it hands the commands over again."""
        try:
            for command in commands:
                assert isinstance(command.receipt, str)
                await self._connection.publish(command.receipt, answer)
        except NatsFailure as failure:
            raise BusUnavailable(failure.message) from None

    async def _return(self, commands: Sequence[ReceivedCommand]) -> None:
        if not self.is_connected:
            return
        try:
            await self._answer(commands, _GIVE_BACK)
            await self._connection.flush(API_SECONDS)
        except (BusUnavailable, NatsFailure) as error:
            # The server hands unacknowledged commands over again anyway.
            _log.debug("bus.not_given_back", count=len(commands), error=error.message)


def _for_header(text: str) -> str:
    """Percent-encode characters that a header cannot carry."""
    return text if _HEADER_SAFE.fullmatch(text) else quote(text, safe=_SAFE_IN_HEADER)
