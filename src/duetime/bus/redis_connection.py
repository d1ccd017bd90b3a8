"""Speaking to a Redis or Valkey server: every wait is bounded, every trouble is the bus's."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from duetime.domain.errors import BusUnavailable

ANSWER_SECONDS = 5.0

Word = str | bytes | int
Call = Sequence[Word]
Answer = Any
"""As it came over the wire: bytes, integers, None, and lists of those."""

_REASONS: dict[type[Exception], str] = {
    OutOfMemoryError: "has no memory left (maxmemory)",
    ReadOnlyError: "is a replica and takes no writes",
    BusyLoadingError: "is still loading its data",
    AuthenticationError: "does not accept the user or the password",
}
_REASONS_BY_CODE = {
    "NOGROUP": "misses a stream or its consumer group, which are created when the bus is opened",
    "MISCONF": "cannot write to its disk",
    "WRONGTYPE": "has something else than a stream under the name of a channel",
    "NOPERM": "does not allow this user what is needed",
}


class RedisConnection:
    """Connects when needed, and again when the connection broke. Raises `BusUnavailable` only."""

    def __init__(self, url: str) -> None:
        """Raises `ValueError` if the URL cannot be understood."""
        place = parse_url(url)
        host = place.get("host", "localhost")
        address = f"[{host}]" if ":" in host else host
        db = f"/{place['db']}" if place.get("db") else ""
        self.name = f"{url.partition(':')[0]}://{address}:{place.get('port', 6379)}{db}"
        self.is_connected = False
        self._secret = place.get("password") or ""
        self._url = url
        self._client: Redis | None = None

    def open(self) -> None:
        if self._client is None:
            self._client = Redis.from_url(
                self._url,
                protocol=2,
                socket_timeout=ANSWER_SECONDS,
                socket_connect_timeout=ANSWER_SECONDS,
                # Who asked knows whether it may be done twice.
                retry=Retry(NoBackoff(), 0),
            )
            # Releases of the client differ in what they make of answers.
            self._client.response_callbacks.clear()

    async def close(self) -> None:
        client, self._client = self._client, None
        self.is_connected = False
        if client is not None:
            await self._drop(client, also_in_use=True)

    async def ask(self, *call: Word, wait_seconds: float = 0.0) -> Answer:
        """The answer to one command, which may take `wait_seconds` by itself."""
        (answer,) = await self.ask_each([call], wait_seconds=wait_seconds)
        if isinstance(answer, ResponseError):
            raise self.unavailable(answer)
        return answer

    async def ask_together(self, *calls: Call) -> list[Answer]:
        """The answers to commands that are carried out all or not at all."""
        answers = await self.ask_each(calls, atomic=True)
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise self.unavailable(answer)
        return answers

    async def ask_each(
        self, calls: Sequence[Call], *, atomic: bool = False, wait_seconds: float = 0.0
    ) -> list[Answer]:
        """The answers to commands that are sent at once. One that was refused has its
        `ResponseError` for an answer."""
        client = self._client
        if client is None:
            raise BusUnavailable(f"the bus {self.name} is not open")
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS + wait_seconds),
                client.pipeline(transaction=atomic) as pipeline,
            ):
                for call in calls:
                    pipeline.execute_command(*call)
                answers: list[Answer] = await pipeline.execute(raise_on_error=False)
        except (RedisError, OSError) as error:
            self.is_connected = isinstance(error, ResponseError)
            if not self.is_connected:
                # What happened to this connection did to those that were idle, too.
                await self._drop(client, also_in_use=False)
            raise self.unavailable(error) from error
        self.is_connected = self._client is not None
        if any(isinstance(answer, ReadOnlyError) for answer in answers):
            # The name may belong to another server by now, which only a new connection finds.
            await self._drop(client, also_in_use=False)
        return answers

    def unavailable(self, error: Exception) -> BusUnavailable:
        words = str(error) or type(error).__name__
        if isinstance(error, TimeoutError) and not isinstance(error, RedisError):
            words = f"no answer within {ANSWER_SECONDS:.0f} s"
        reason = _REASONS.get(type(error)) or _REASONS_BY_CODE.get(words.partition(" ")[0])
        text = f"{self.name}: {words}" if reason is None else f"{self.name} {reason}: {words}"
        return BusUnavailable(text.replace(self._secret, "***") if self._secret else text)

    async def _drop(self, client: Redis, *, also_in_use: bool) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await client.connection_pool.disconnect(inuse_connections=also_in_use)
        except (RedisError, OSError):
            # It is broken, then, and this was to be its end anyway.
            return
