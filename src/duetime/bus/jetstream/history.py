"""The messages that a stream of JetStream holds, read without consuming them."""

import asyncio
from typing import Any

from msgspec import Struct

from duetime.bus.jetstream.api import call, refused
from duetime.nats import NatsConnection
from duetime.nats.connection import ApiError
from duetime.ports.bus import Channel

MOST_REQUESTS = 10_000
"""Places of messages that are gone, or are of other subjects, have to be asked for, too."""

MOST_AT_ONCE = 100

_NOTHING_THERE = 404


class StoredMessage(Struct, frozen=True, rename={"sequence": "seq", "headers": "hdrs"}):
    """A message with its place in the stream. `headers` are as they were on the wire."""

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
    """Asks for one message at a time by its place, because a stream that is a queue has no room
    for another consumer, and a consumer of it would take messages away."""

    def __init__(self, connection: NatsConnection, stream: str, channel: Channel) -> None:
        self._connection = connection
        self._stream = stream
        self._channel = channel

    async def newest(self) -> int:
        """The place of the last message; 0 if there is none."""
        message = await self._get({"last_by_subj": self._channel})
        return 0 if message is None else message.sequence

    async def last(self, wanted: int, newest: int) -> list[StoredMessage]:
        """Up to so many, the oldest of them first; `newest` is the place of the last of them."""
        oldest = await self._get({"seq": 1, "next_by_subj": self._channel})
        if oldest is None:
            return []
        first = max(oldest.sequence, newest - MOST_REQUESTS + 1)
        found: list[StoredMessage] = []
        end, width = newest + 1, min(wanted, MOST_AT_ONCE)
        while len(found) < wanted and end > first:
            start = max(first, end - width)
            found = await self._between(start, end) + found
            end, width = start, min(2 * width, MOST_AT_ONCE)
        return found[-wanted:]

    async def since(self, place: int) -> list[StoredMessage]:
        """Those behind that place, the oldest first."""
        start, end = place + 1, await self.newest() + 1
        found: list[StoredMessage] = []
        while start < end:
            found += await self._between(start, min(start + MOST_AT_ONCE, end))
            start += MOST_AT_ONCE
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
        if answer.error is not None and answer.error.code != _NOTHING_THERE:
            raise refused(self._connection, f"read the stream of {self._channel}", answer.error)
        return answer.message
