"""Looks at a channel without consuming it: the messages it holds, and those to come."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from msgspec import Struct
from nats.aio.msg import Msg

from duetime.bus.jetstream.api import call, refused
from duetime.domain.limits import MAX_OLD_MESSAGES
from duetime.nats import NatsConnection
from duetime.nats.connection import ApiError
from duetime.ports.bus import DEDUPLICATION_SECONDS, Channel

MAX_CONCURRENT_REQUESTS = 100
MAX_UNREAD = 10_000
MAX_REMEMBERED_IDS = 100_000

_NOT_FOUND = 404


class StoredMessage(Struct, frozen=True, rename={"sequence": "seq", "headers": "hdrs"}):
    """A message with its sequence number in the stream. `headers` are the raw bytes."""

    subject: str
    sequence: int
    headers: bytes = b""
    data: bytes = b""

    @property
    def id(self) -> str | None:
        for line in self.headers.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"Nats-Msg-Id":
                return value.strip().decode(errors="replace")
        return None


class _Answer(Struct, frozen=True):
    message: StoredMessage | None = None
    error: ApiError | None = None


class History:
    """Requests stored messages one at a time by sequence number. A second consumer is no option:
    a work-queue stream allows none, and it would take messages away."""

    def __init__(self, connection: NatsConnection, stream: str, channel: Channel) -> None:
        self._connection = connection
        self._stream = stream
        self._channel = channel

    async def newest(self) -> int:
        """The sequence number of the last message; 0 if there is none."""
        message = await self._get({"last_by_subj": self._channel})
        return 0 if message is None else message.sequence

    async def last(self, count: int, newest: int) -> list[StoredMessage]:
        """Up to `count` messages that end with the sequence number `newest`, oldest first."""
        oldest = await self._get({"seq": 1, "next_by_subj": self._channel})
        if oldest is None:
            return []
        # Deleted messages and those of other subjects count too.
        first = max(oldest.sequence, newest - MAX_OLD_MESSAGES + 1)
        found: list[StoredMessage] = []
        end, width = newest + 1, min(count, MAX_CONCURRENT_REQUESTS)
        while len(found) < count and end > first:
            start = max(first, end - width)
            found = await self._between(start, end) + found
            end, width = start, min(2 * width, MAX_CONCURRENT_REQUESTS)
        return found[-count:]

    async def since(self, sequence: int) -> list[StoredMessage]:
        """The messages after `sequence`, oldest first."""
        start, end = sequence + 1, await self.newest() + 1
        found: list[StoredMessage] = []
        while start < end:
            found += await self._between(start, min(start + MAX_CONCURRENT_REQUESTS, end))
            start += MAX_CONCURRENT_REQUESTS
        return found

    async def _between(self, start: int, end_exclusive: int) -> list[StoredMessage]:
        answers = await asyncio.gather(
            *(self._get({"seq": sequence}) for sequence in range(start, end_exclusive))
        )
        return [
            message
            for message in answers
            if message is not None and message.subject == self._channel
        ]

    async def _get(self, request: dict[str, Any]) -> StoredMessage | None:
        answer = await call(self._connection, f"STREAM.MSG.GET.{self._stream}", request, _Answer)
        if answer.error is not None and answer.error.code != _NOT_FOUND:
            raise refused(self._connection, f"read the stream of {self._channel}", answer.error)
        return answer.message


class Watch:
    """Subscribes beside the streams, because a work-queue stream allows no second consumer. It
    therefore receives repeats that the stream drops, and drops them likewise."""

    def __init__(self) -> None:
        self._unread: deque[bytes] = deque(maxlen=MAX_UNREAD)
        self._news = asyncio.Event()
        self._has_ended = False
        self._received_at: dict[str, float] = {}

    def take(self, message: Msg) -> None:
        """When too many messages are unread, the oldest are dropped."""
        if not self._is_repeat((message.headers or {}).get("Nats-Msg-Id")):
            self._unread.append(message.data)
            self._news.set()

    def drop(self, id: str | None, data: bytes) -> None:
        """Skip a message that was already shown, whether it has arrived here or not."""
        if id is None or self._is_repeat(id):
            with suppress(ValueError):
                self._unread.remove(data)

    def end(self) -> None:
        self._has_ended = True
        self._news.set()

    async def next(self) -> bytes | None:
        """The next message, or None when the watch has ended."""
        while not self._unread:
            if self._has_ended:
                return None
            self._news.clear()
            await self._news.wait()
        return self._unread.popleft()

    def _is_repeat(self, id: str | None) -> bool:
        if id is None:
            return False
        now = asyncio.get_running_loop().time()
        received_at = self._received_at.get(id)
        if received_at is not None and now < received_at + DEDUPLICATION_SECONDS:
            return True
        self._received_at.pop(id, None)
        self._received_at[id] = now
        if len(self._received_at) > MAX_REMEMBERED_IDS:
            del self._received_at[next(iter(self._received_at))]
        return False
