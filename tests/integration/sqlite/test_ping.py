"""The health check of the store: it writes nothing, and still notices a writer that hangs."""

import asyncio

import apsw
import pytest

from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract.steps import create
from duetime.testing.timers import make_timer


async def test_a_ping_starts_no_write_transaction(
    store: SqliteStore, database: apsw.Connection
) -> None:
    database.execute("BEGIN IMMEDIATE")
    await store.ping()
    database.execute("ROLLBACK")


async def test_a_ping_has_no_answer_while_a_write_hangs(
    store: SqliteStore, database: apsw.Connection
) -> None:
    database.execute("BEGIN IMMEDIATE")
    async with asyncio.TaskGroup() as group:
        group.create_task(create(store, make_timer("hangs")))
        ping = group.create_task(store.ping())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.shield(ping)
        database.execute("ROLLBACK")
    await store.ping()
