"""A database that can be read while its writers have to wait."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import asyncpg

from tests.real_server.databases import Database, PostgresDatabase, SqliteDatabase


@asynccontextmanager
async def writes_held(database: Database) -> AsyncIterator[None]:
    """No write of a server gets through meanwhile. Writes of a server that dies never do."""
    if isinstance(database, SqliteDatabase):
        with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
        return
    assert isinstance(database, PostgresDatabase)
    held = await asyncpg.connect(database.url)
    other = await asyncpg.connect(database.url)
    try:
        async with held.transaction():
            schema = database.schema
            await held.execute(
                f"LOCK TABLE {schema}.shard_fences, {schema}.pending_timers IN EXCLUSIVE MODE"
            )
            yield
            # A waiting statement would otherwise run after the death of its client.
            await other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = $1 AND wait_event_type = 'Lock'",
                f"duetime ({schema})",
            )
    finally:
        await held.close()
        await other.close()
