"""Connections to the database, a few for each kind of work."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import asyncpg

from duetime.domain.errors import StoreUnavailable
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
from duetime.stores.postgres.options import PostgresOptions

Row = Sequence[Any]
"""A row as the driver hands it out, its values in the order of the statement's columns."""

_ANSWER_GRACE_SECONDS = 2.0
"""How much longer we wait for an answer than the server works on it: only a network that has
swallowed the answer makes us give up first."""

_IDLE_IN_TRANSACTION_MS = 5_000
"""A node that is stopped in the middle of a transaction loses it, and with it its locks."""

PLANS_BY_INDEX: Mapping[str, str] = {
    # Every statement of ours goes by an index, from a short list to a large table. The planner
    # would find that too if it knew how large the tables are; but a plan is kept from when a
    # table was empty, and a claim that reads a backlog from end to end is the end of the service.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_generic_plan",
}

LISTS_BY_INDEX: Mapping[str, str] = {
    **PLANS_BY_INDEX,
    # Lists are read in the order of an index. Where the planner takes a table for empty, it would
    # as soon read it by any other index, and sort.
    "enable_sort": "off",
}

ANY_PLAN: Mapping[str, str] = {}
"""For statements that read large parts of tables on purpose."""

PLANS_FOR_VALUES: Mapping[str, str] = {"plan_cache_mode": "force_custom_plan"}
"""For statements whose values say which partitions of the history they need."""

_USELESS_AFTER = (
    # The server would have ended the statement before: nothing comes any more.
    TimeoutError,
    # The driver cannot tell any more what comes.
    asyncpg.InternalClientError,
    # Nobody wants to wait for it, and asking the server to stop would be one more thing to
    # wait for.
    asyncio.CancelledError,
    # The server is no longer the primary; a new connection may lead to the one that is.
    asyncpg.ReadOnlySQLTransactionError,
)
"""After these a connection is not used again."""


class Connection(Protocol):
    """What we use of a driver's connection."""

    async def fetch(self, statement: str, *values: Any) -> list[Row]: ...

    async def fetchrow(self, statement: str, *values: Any) -> Row | None: ...

    async def fetchval(self, statement: str, *values: Any) -> Any: ...

    async def execute(self, statement: str, *values: Any) -> str: ...

    def transaction(self, *, isolation: str | None = None, readonly: bool = False) -> Any: ...


async def connect(
    options: PostgresOptions,
    settings: Mapping[str, str],
    *,
    statement_timeout_seconds: float | None = None,
) -> Any:
    """A connection of the driver's own. Raises `StoreUnavailable`."""
    try:
        return await asyncpg.connect(
            options.url, **_arguments(options, settings, statement_timeout_seconds)
        )
    except ValueError as error:
        # What asyncpg says may repeat the URL, and with it the password.
        raise StoreUnavailable(
            "the database URL cannot be read: it should look like"
            " postgresql://user:password@host:5432/database"
        ) from error
    except DRIVER_ERRORS as error:
        raise store_error(error, options) from error


@asynccontextmanager
async def connected(
    options: PostgresOptions,
    settings: Mapping[str, str],
    *,
    statement_timeout_seconds: float | None = None,
) -> AsyncIterator[Connection]:
    """A connection for one piece of work that is not done often. Raises `StoreUnavailable`."""
    connection = await connect(
        options, settings, statement_timeout_seconds=statement_timeout_seconds
    )
    try:
        yield connection
        await connection.close(timeout=options.connect_timeout_seconds)
    except DRIVER_ERRORS as error:
        raise store_error(error, options) from error
    finally:
        connection.terminate()


class Connections:
    """A pool: connections are made when they are first needed, and again after they broke.

    Whatever is away, a call ends: with an answer, or with `StoreUnavailable` after the time to
    connect and the time for a statement.
    """

    def __init__(self, options: PostgresOptions, settings: Mapping[str, str], size: int) -> None:
        self._options = options
        self._pool = asyncpg.create_pool(
            options.url,
            min_size=0,
            max_size=size,
            # The usual reset would be a round trip after each statement, and there is nothing
            # to reset: settings and locks of ours end with their transaction.
            reset=_leave_as_it_is,
            **_arguments(options, settings, None),
        )

    async def open(self) -> None:
        await self._pool

    async def close(self) -> None:
        """Let statements that are under way finish, for as long as they may take."""
        try:
            async with asyncio.timeout(
                self._options.statement_timeout_seconds + _ANSWER_GRACE_SECONDS
            ):
                await self._pool.close()
        except DRIVER_ERRORS:
            # What is left is not worth waiting for.
            self._pool.terminate()

    async def fetch(self, statement: str, *values: Any) -> list[Row]:
        async with self.borrow() as connection:
            return await connection.fetch(statement, *values)

    async def fetch_one(self, statement: str, *values: Any) -> Row | None:
        async with self.borrow() as connection:
            return await connection.fetchrow(statement, *values)

    async def fetch_value(self, statement: str, *values: Any) -> Any:
        async with self.borrow() as connection:
            return await connection.fetchval(statement, *values)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Connection]:
        """A connection for several statements. Errors of the driver become ours."""
        patience = self._options.connect_timeout_seconds
        try:
            async with asyncio.timeout(patience):
                connection = await self._pool.acquire()
            try:
                yield connection
            except _USELESS_AFTER:
                connection.terminate()
                raise
            finally:
                await self._pool.release(connection, timeout=patience)
        except DRIVER_ERRORS as error:
            raise store_error(error, self._options) from error


async def _leave_as_it_is(connection: object) -> None:
    pass


def _arguments(
    options: PostgresOptions,
    settings: Mapping[str, str],
    statement_timeout_seconds: float | None,
) -> dict[str, Any]:
    timeout_seconds = statement_timeout_seconds or options.statement_timeout_seconds
    # Of several servers only one is the primary, wherever it is in the list.
    primary = {"target_session_attrs": "read-write"} if options.has_several_hosts else {}
    return {
        **primary,
        "timeout": options.connect_timeout_seconds,
        "command_timeout": timeout_seconds + _ANSWER_GRACE_SECONDS,
        # Our statements are few, some are long, and all are worth keeping prepared.
        "max_cacheable_statement_size": 0,
        "max_cached_statement_lifetime": 0,
        "server_settings": {
            "application_name": f"duetime ({options.schema})",
            "search_path": options.schema,
            "statement_timeout": str(round(timeout_seconds * 1_000)),
            "idle_in_transaction_session_timeout": str(_IDLE_IN_TRANSACTION_MS),
            "jit": "off",
            # An answered create is on disk, whatever the role or the database is set to.
            "synchronous_commit": "on",
            # Each statement has to see what was committed before it, locks alone are not enough.
            "default_transaction_isolation": "read committed",
            **settings,
        },
    }
