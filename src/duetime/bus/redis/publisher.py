"""Publishes on Redis streams, many messages at a time."""

import asyncio
from collections import deque

from msgspec import Struct
from redis.exceptions import ResponseError

from duetime.bus.redis.connection import Answer, Call, RedisConnection, Word
from duetime.domain.errors import BusUnavailable
from duetime.domain.outcome import NotSent
from duetime.ports.bus import Channel, OutgoingMessage
from duetime.ports.destination import MaySend

MAX_BATCH = 1_000
MAX_BATCH_BYTES = 1_000_000


class _Unsent(Struct):
    message: OutgoingMessage
    may_send: MaySend
    answered: asyncio.Future[None]


class RedisPublisher:
    """While one batch is under way, the next one fills, so batches grow with the load.

    At most one batch is under way, so messages are stored in the order of `publish`.
    """

    def __init__(self, connection: RedisConnection, keep_seconds: float) -> None:
        self._connection = connection
        self._keep_ms = round(keep_seconds * 1_000)
        self._newest_ms = 0
        self._unsent: deque[_Unsent] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def publish(self, message: OutgoingMessage, may_send: MaySend) -> None:
        answered = asyncio.get_running_loop().create_future()
        self._unsent.append(_Unsent(message, may_send, answered))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        await answered

    async def wait_until_idle(self) -> None:
        if self._sending is not None:
            await asyncio.wait({self._sending})

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                await self._send(self._next_batch())
        finally:
            self._sending = None

    def _next_batch(self) -> list[_Unsent]:
        batch: list[_Unsent] = []
        size = 0
        while self._unsent and len(batch) < MAX_BATCH and size < MAX_BATCH_BYTES:
            batch.append(self._unsent.popleft())
            size += len(batch[-1].message.data)
        return batch

    async def _send(self, batch: list[_Unsent]) -> None:
        def calls() -> list[Call]:
            batch[:] = _permitted(batch)
            return self._calls(batch)

        try:
            answers = await self._connection.ask_each(calls)
        except Exception as error:
            # The messages queued meanwhile would only wait as long for the same failure.
            batch += self._unsent
            self._unsent.clear()
            answers = [error] * len(batch)
        for unsent, answer in zip(batch, answers, strict=True):
            self._resolve(unsent.answered, answer)

    def _resolve(self, answered: asyncio.Future[None], answer: Answer) -> None:
        if isinstance(answer, bytes):
            self._newest_ms = max(self._newest_ms, int(answer.partition(b"-")[0]))
        if answered.done():
            return
        if isinstance(answer, BusUnavailable):
            answered.set_exception(BusUnavailable(answer.message, lacks=answer.lacks))
        elif isinstance(answer, ResponseError):
            answered.set_exception(self._connection.unavailable(answer))
        elif isinstance(answer, Exception):
            answered.set_exception(answer)
        else:
            answered.set_result(None)

    def _calls(self, batch: list[_Unsent]) -> list[Call]:
        trimmed: set[Channel] = {Channel.COMMANDS}
        calls: list[Call] = []
        for unsent in batch:
            message = unsent.message
            trimming: tuple[Word, ...] = ()
            if self._newest_ms and message.channel not in trimmed:
                # Measured by the server's clock, which is in the id of the last entry.
                trimming = ("MINID", "~", self._newest_ms - self._keep_ms)
                trimmed.add(message.channel)
            fields: tuple[Word, ...] = ("id", message.id, "key", message.key, "data", message.data)
            if message.traceparent is not None:
                fields += ("traceparent", message.traceparent)
            calls.append(("XADD", message.channel.value, *trimming, "*", *fields))
        return calls


def _permitted(batch: list[_Unsent]) -> list[_Unsent]:
    """The messages that may still be sent; the others end here."""
    permitted = []
    for unsent in batch:
        if unsent.may_send():
            permitted.append(unsent)
        elif not unsent.answered.done():
            unsent.answered.set_exception(NotSent())
    return permitted
