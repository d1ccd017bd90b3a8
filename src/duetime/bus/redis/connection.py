"""Speaking to a Redis or Valkey server: every wait is bounded, every trouble is the bus's."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from duetime.bus.redis.failures import Place, problem_of
from duetime.domain.errors import BusUnavailable

ANSWER_SECONDS = 5.0

Word = str | bytes | int
Call = Sequence[Word]
Answer = Any
"""As it came over the wire: bytes, integers, None, and lists of those."""

_PLAIN_SCHEMES = {"valkey": "redis", "valkeys": "rediss"}


class RedisConnection:
    """Connects when needed, and again when the connection broke. Raises `BusUnavailable` only."""

    def __init__(self, url: str) -> None:
        """Raises `ValueError` if the URL cannot be understood."""
        scheme, _, rest = url.partition(":")
        plain_scheme = _PLAIN_SCHEMES.get(scheme, scheme)
        self._url = f"{plain_scheme}:{rest}"
        place = parse_url(self._url)
        host = place.get("host", "localhost")
        address = f"[{host}]" if ":" in host else host
        db = f"/{place['db']}" if place.get("db") else ""
        self.name = f"{scheme}://{address}:{place.get('port', 6379)}{db}"
        self.is_connected = False
        self._place = Place(name=self.name, host=host, secret=place.get("password") or "")
        self._uses_tls = plain_scheme == "rediss"
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
            unavailable = self.unavailable(error)
            self.is_connected = isinstance(error, ResponseError)
            if not self.is_connected:
                # What happened to this connection did to those that were idle, too.
                await self._drop(client, also_in_use=False)
            raise unavailable from error
        self.is_connected = self._client is not None
        if any(isinstance(answer, ReadOnlyError) for answer in answers):
            # The name may belong to another server by now, which only a new connection finds.
            await self._drop(client, also_in_use=False)
        return answers

    def unavailable(self, error: Exception) -> BusUnavailable:
        problem = problem_of(
            error,
            self._place,
            tls_begins=self._uses_tls and not self.is_connected,
            answer_seconds=ANSWER_SECONDS,
        )
        return BusUnavailable(problem)

    async def _drop(self, client: Redis, *, also_in_use: bool) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await client.connection_pool.disconnect(inuse_connections=also_in_use)
        except (RedisError, OSError):
            # It is broken, then, and this was to be its end anyway.
            return
