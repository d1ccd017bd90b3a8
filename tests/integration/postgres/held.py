"""Writes whose transaction stays open until the test commits it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from duetime.stores.postgres import PostgresOptions
from duetime.stores.postgres.connections import PLANS_BY_INDEX, Connection, connected

PATIENCE_SECONDS = 10

_IS_WAITED_FOR = """
    SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND $1 = ANY (pg_blocking_pids(pid)))
"""


class HeldWrite:
    """A statement in an open transaction."""

    def __init__(self, connection: Connection, pid: int) -> None:
        self._connection = connection
        self.pid = pid

    async def run(self, statement: str, *values: Any) -> Any:
        return await self._connection.fetch(statement, *values)

    async def commit(self) -> None:
        await self._connection.execute("COMMIT")

    async def roll_back(self) -> None:
        await self._connection.execute("ROLLBACK")

    async def is_waited_for(self, database: Connection) -> None:
        """Return when another session waits for a lock of this transaction."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await database.fetchval(_IS_WAITED_FOR, self.pid):
                pass


@asynccontextmanager
async def held(options: PostgresOptions, statement: str, *values: Any) -> AsyncIterator[HeldWrite]:
    async with connected(options, PLANS_BY_INDEX) as connection:
        pid = await connection.fetchval("SELECT pg_backend_pid()")
        await connection.execute("BEGIN")
        write = HeldWrite(connection, pid)
        await write.run(statement, *values)
        yield write
