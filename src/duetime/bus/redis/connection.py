"""Talks to a Redis or Valkey server. Every wait is bounded, every failure is `BusUnavailable`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from duetime.bus.redis.failures import Server, problem_of, resource_lacked
from duetime.domain.errors import BusUnavailable

ANSWER_SECONDS = 5.0

Word = str | bytes | int
Call = Sequence[Word]
Answer = Any
"""An answer as received: bytes, integers, None, and lists of these."""

_PLAIN_SCHEMES = {"valkey": "redis", "valkeys": "rediss"}


class RedisConnection:
    """Connects when needed, and again after a connection broke. Raises only `BusUnavailable`."""

    def __init__(self, url: str) -> None:
        """Raises `ValueError` for an invalid URL."""
        scheme, _, rest = url.partition(":")
        plain_scheme = _PLAIN_SCHEMES.get(scheme, scheme)
        self._url = f"{plain_scheme}:{rest}"
        parsed = parse_url(self._url)
        host = parsed.get("host", "localhost")
        address = f"[{host}]" if ":" in host else host
        db = f"/{parsed['db']}" if parsed.get("db") else ""
        self.name = f"{scheme}://{address}:{parsed.get('port', 6379)}{db}"
        self.is_connected = False
        self._server = Server(name=self.name, host=host, secret=parsed.get("password") or "")
        self._uses_tls = plain_scheme == "rediss"
        self._client: Redis | None = None

    def open(self) -> None:
        if self._client is None:
            self._client = Redis.from_url(
                self._url,
                protocol=2,
                socket_timeout=ANSWER_SECONDS,
                socket_connect_timeout=ANSWER_SECONDS,
                # Only the caller knows whether a command may be repeated.
                retry=Retry(NoBackoff(), 0),
            )
            # Releases of the library convert answers differently; keep them raw.
            self._client.response_callbacks.clear()

    async def close(self) -> None:
        client, self._client = self._client, None
        self.is_connected = False
        if client is not None:
            await self._drop(client, also_in_use=True)

    async def ask(self, *call: Word, wait_seconds: float = 0.0) -> Answer:
        """The answer to one command, which may block for `wait_seconds`."""
        (answer,) = await self.ask_each([call], wait_seconds=wait_seconds)
        if isinstance(answer, ResponseError):
            raise self.unavailable(answer)
        return answer

    async def ask_together(self, *calls: Call) -> list[Answer]:
        """The answers to commands that are executed in one transaction."""
        answers = await self.ask_each(calls, atomic=True)
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise self.unavailable(answer)
        return answers

    async def ask_each(
        self,
        calls: Sequence[Call] | Callable[[], Sequence[Call]],
        *,
        atomic: bool = False,
        wait_seconds: float = 0.0,
    ) -> list[Answer]:
        """The answers to commands sent in one pipeline. The answer to a refused command is its
        `ResponseError`.

        A function is called for the commands when the connection is there, directly before they
        are sent."""
        client = self._client
        if client is None:
            raise BusUnavailable(f"the bus {self.name} is not open")
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS + wait_seconds),
                client.pipeline(transaction=atomic) as pipeline,
            ):
                if callable(calls):
                    # The pipeline uses this connection, and returns it to the pool at its end.
                    pool: Any = client.connection_pool
                    pipeline.connection = await pool.get_connection()
                    calls = calls()
                for call in calls:
                    pipeline.execute_command(*call)
                answers: list[Answer] = await pipeline.execute(raise_on_error=False)
        except (RedisError, OSError) as error:
            unavailable = self.unavailable(error)
            self.is_connected = isinstance(error, ResponseError)
            if not self.is_connected:
                # The idle connections most likely broke, too.
                await self._drop(client, also_in_use=False)
            raise unavailable from error
        self.is_connected = self._client is not None
        if any(isinstance(answer, ReadOnlyError) for answer in answers):
            # After a failover the name may point to another server; only a new connection
            # finds it.
            await self._drop(client, also_in_use=False)
        return answers

    def unavailable(self, error: Exception) -> BusUnavailable:
        problem = problem_of(
            error,
            self._server,
            in_handshake=self._uses_tls and not self.is_connected,
            answer_seconds=ANSWER_SECONDS,
        )
        # A connection that had been established may have carried something.
        lacks = None if self.is_connected else resource_lacked(error)
        return BusUnavailable(problem, lacks=lacks)

    async def _drop(self, client: Redis, *, also_in_use: bool) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await client.connection_pool.disconnect(inuse_connections=also_in_use)
        except (RedisError, OSError):
            return  # The connection is broken, and it was to be dropped anyway.
