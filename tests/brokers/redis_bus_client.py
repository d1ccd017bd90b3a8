"""A client of the bus on Redis Streams."""

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from redis.asyncio import Redis

from duetime.ports.bus import Channel
from tests.brokers.bus_client import Command, EventBook, Json

BLOCK_MS = 1_000
BATCH = 500


class RedisBusClient:
    """Reads the stream of events from its beginning. This broker drops no repeats, so each command
    is sent once, while the broker is up."""

    def __init__(self, url: str) -> None:
        self.book = EventBook()
        self._client: Redis = Redis.from_url(url)

    async def send(self, commands: Sequence[Command]) -> None:
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.xadd(Channel.COMMANDS, {"id": command.id, "data": command.data})
            await pipeline.execute()

    async def rejections(self) -> list[Json]:
        entries: Any = await self._client.xrange(Channel.REJECTED)
        return [json.loads(fields[b"data"]) for _, fields in entries]

    async def unacknowledged(self) -> int:
        """Acknowledged commands are deleted, so the rest is unacknowledged."""
        return int(await self._client.xlen(Channel.COMMANDS))

    async def _read(self) -> None:
        last = "0-0"
        while True:
            answer: Any = await self._client.xread(
                {Channel.EVENTS: last}, count=BATCH, block=BLOCK_MS
            )
            for _, entries in answer:
                for place, fields in entries:
                    last = place.decode()
                    self.book.enter(last, fields[b"data"])

    async def __aenter__(self) -> Self:
        self.book.start_reading(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.book.stop_reading()
        await self._client.aclose()
