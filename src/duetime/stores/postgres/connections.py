"""Connections to the database: settings, pools, and connections for one piece of work."""

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import asyncpg

from duetime.domain.errors import StoreUnavailable
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
from duetime.stores.postgres.options import PostgresOptions

Row = Sequence[Any]
"""A row of the driver: values in the order of the statement's columns."""

_ANSWER_GRACE_SECONDS = 2.0
"""Time to wait for an answer beyond the server's own statement timeout. The client gives up first
only if the network has swallowed the answer."""

_HURRIED_FRACTION = 0.2
"""Share of the time to connect that a call has while the server is known to let nobody in."""

_IDLE_IN_TRANSACTION_MS = 5_000
"""Idle time after which a transaction ends, so that a node stopped in the middle of one does not
keep its locks."""

_LONGEST_STATEMENT_SECONDS = 600.0
"""Time for a statement of a patient pool, unless other statements have more."""

_LOOK_SECONDS = 5.0
"""Time between two looks at a long statement, unless statements usually have less."""

_LOOKS_WITHOUT_WORK = 2
"""Looks in a row that did not see the server at work, after which its answer is not waited for. One
may fall between the end of a statement and its answer, or on a busy moment."""

_OWN_PID = "SELECT pg_backend_pid()"

# A server that waits for its client to read has finished its work.
_IS_AT_WORK = """
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_stat_activity
        WHERE pid = $1 AND state = 'active' AND wait_event IS DISTINCT FROM 'ClientWrite')
"""

PLANS_BY_INDEX: Mapping[str, str] = {
    # Every statement goes by an index, from a short list into a large table. The planner would
    # choose that too if it knew the tables' sizes. But plans are kept from when a table was empty,
    # and a claim that reads a whole backlog would bring the service to a stop.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_generic_plan",
}

LISTS_BY_INDEX: Mapping[str, str] = {
    **PLANS_BY_INDEX,
    # Lists are read in the order of an index. Where the planner takes a table for empty, it might
    # read it by any other index, and sort.
    "enable_sort": "off",
}

ANY_PLAN: Mapping[str, str] = {}
"""Settings for statements that read large parts of tables on purpose."""

PLANS_FOR_VALUES: Mapping[str, str] = {"plan_cache_mode": "force_custom_plan"}
"""Settings for statements whose values decide which partitions of the history they read."""

_USELESS_AFTER = (
    # The server would have ended the statement before: no answer will come.
    TimeoutError,
    # The driver has lost track of the protocol.
    asyncpg.InternalClientError,
    # The caller waits no longer, neither for the answer nor for the server to stop.
    asyncio.CancelledError,
    # The server is no longer the primary; a new connection may lead to the one that is.
    asyncpg.ReadOnlySQLTransactionError,
)
"""Errors after which a connection is not used again."""


class Connection(Protocol):
    """The part of the driver's connection that the store uses."""

    async def fetch(self, statement: str, *values: Any) -> list[Row]: ...

    async def fetchrow(self, statement: str, *values: Any) -> Row | None: ...

    async def fetchval(self, statement: str, *values: Any) -> Any: ...

    async def execute(self, statement: str, *values: Any) -> str: ...

    def cursor(self, statement: str, *values: Any) -> AsyncIterable[Row]: ...

    def transaction(self, *, isolation: str | None = None, readonly: bool = False) -> Any: ...


async def connect(
    options: PostgresOptions,
    settings: Mapping[str, str],
    *,
    statement_timeout_seconds: float | None = None,
) -> Any:
    """A connection of the driver, for listening and long reads. Raises `StoreUnavailable`."""
    try:
        return await asyncpg.connect(
            options.url, **_arguments(options, settings, statement_timeout_seconds)
        )
    except ValueError as error:
        # The driver's message may repeat the URL, and with it the password.
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
    """A connection for one piece of rare work. Raises `StoreUnavailable`."""
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
    """A pool: connections are made when first needed, and again after they broke.

    Every call ends: with an answer, or with `StoreUnavailable` after at most the time to connect
    and the time for a statement.

    A call that gets no connection in its time, while no other has one, puts the later ones in a
    hurry: for as long again, calls have only a fraction of the time to connect. Otherwise a create
    that waits for the end of another would wait twice. The first new connection ends the hurry
    early. A server that takes long to let anyone in has its full time again after the hurry.
    """

    def __init__(
        self,
        options: PostgresOptions,
        settings: Mapping[str, str],
        size: int,
        *,
        statement_timeout_seconds: float | None = None,
    ) -> None:
        self._options = options
        self._hurried_until_seconds = -math.inf
        self._pool = asyncpg.create_pool(
            options.url,
            min_size=0,
            max_size=size,
            init=self._end_hurry,
            # The usual reset is a round trip after each statement. There is nothing to reset:
            # settings and locks end with their transaction.
            reset=_reset_nothing,
            **_arguments(options, settings, statement_timeout_seconds),
        )

    @property
    def idle(self) -> int:
        """Open connections that wait for work."""
        return int(self._pool.get_idle_size())

    @property
    def used(self) -> int:
        """Open connections at work."""
        return int(self._pool.get_size()) - self.idle

    async def open(self) -> None:
        await self._pool

    async def close(self) -> None:
        """Let running statements finish within their time, then close the connections."""
        try:
            async with asyncio.timeout(
                self._options.statement_timeout_seconds + _ANSWER_GRACE_SECONDS
            ):
                await self._pool.close()
        except DRIVER_ERRORS:
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
        """A connection for several statements. Raises the driver's errors as `store_error`."""
        try:
            connection = await self._acquire()
            try:
                yield connection
            except _USELESS_AFTER:
                connection.terminate()
                raise
            finally:
                await self._pool.release(connection, timeout=self._options.connect_timeout_seconds)
        except DRIVER_ERRORS as error:
            raise store_error(error, self._options) from error

    async def _acquire(self) -> Any:
        loop = asyncio.get_running_loop()
        patience = self._options.connect_timeout_seconds
        hurried = loop.time() < self._hurried_until_seconds
        try:
            async with asyncio.timeout(patience * _HURRIED_FRACTION if hurried else patience):
                return await self._pool.acquire()
        except TimeoutError:
            # While statements are under way, the server may be slow rather than away.
            if not hurried and self.used == 0:
                self._hurried_until_seconds = loop.time() + patience
            raise

    async def _end_hurry(self, new_connection: object) -> None:
        self._hurried_until_seconds = -math.inf


class PatientConnections(Connections):
    """A pool for statements that may rightly take long.

    On a connection that has died unnoticed, a statement would be waited for as long. Therefore a
    connection has to answer before it is used, and another pool, `asked`, looks whether the server
    works on the statement. If not, the call ends with `StoreUnavailable`.
    """

    def __init__(
        self,
        options: PostgresOptions,
        settings: Mapping[str, str],
        size: int,
        *,
        asked: Connections,
    ) -> None:
        usual_seconds = options.statement_timeout_seconds
        super().__init__(
            options,
            settings,
            size,
            statement_timeout_seconds=max(usual_seconds, _LONGEST_STATEMENT_SECONDS),
        )
        self._asked = asked
        self._answer_seconds = usual_seconds + _ANSWER_GRACE_SECONDS
        self._look_seconds = min(usual_seconds, _LOOK_SECONDS)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Connection]:
        async with super().borrow() as connection:
            async with asyncio.timeout(self._answer_seconds):
                pid = await connection.fetchval(_OWN_PID)
            watch = asyncio.create_task(self._end_if_dead(connection, pid))
            try:
                yield connection
            finally:
                watch.cancel()

    async def _end_if_dead(self, connection: Any, pid: int) -> None:
        looks = 0
        while looks < _LOOKS_WITHOUT_WORK:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await asyncio.Event().wait()
            looks = 0 if await self._is_at_work(pid) else looks + 1
        connection.terminate()

    async def _is_at_work(self, pid: int) -> bool:
        try:
            return bool(await self._asked.fetch_value(_IS_AT_WORK, pid))
        except StoreUnavailable:
            return False


async def _reset_nothing(connection: object) -> None:
    pass


def _arguments(
    options: PostgresOptions,
    settings: Mapping[str, str],
    statement_timeout_seconds: float | None,
) -> dict[str, Any]:
    timeout_seconds = statement_timeout_seconds or options.statement_timeout_seconds
    # Only one of several servers is the primary, wherever it is in the list.
    primary = {"target_session_attrs": "read-write"} if options.has_several_hosts else {}
    return {
        **primary,
        "timeout": options.connect_timeout_seconds,
        "command_timeout": timeout_seconds + _ANSWER_GRACE_SECONDS,
        # There are few statements; long ones, too, are worth keeping prepared.
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
            # Each statement must see all commits before it; locks alone are not enough.
            "default_transaction_isolation": "read committed",
            **settings,
        },
    }
