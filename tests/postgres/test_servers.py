"""The test servers and the relay do what other tests rely on."""

import asyncio

import asyncpg
import pytest

from tests.postgres.fixtures import MakePostgres
from tests.postgres.relay import Relay

pytestmark = pytest.mark.e2e


async def test_a_schema_is_free_to_use(postgres_url: str, postgres_schema: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(f"CREATE SCHEMA {postgres_schema}")
    await connection.execute(f"CREATE TABLE {postgres_schema}.numbers (number int)")
    assert await connection.fetchval("SHOW timezone") == "UTC"
    await connection.close()


async def test_commits_survive_a_crash_of_the_server(make_postgres: MakePostgres) -> None:
    with make_postgres(durable=True) as server:
        connection = await asyncpg.connect(server.url)
        assert await connection.fetchval("SHOW fsync") == "on"
        await connection.execute("CREATE TABLE numbers AS SELECT 1 AS number")
        before = server.pid

        server.restart("immediate")

        assert server.pid != before
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.fetchval("SELECT 1")
        connection = await asyncpg.connect(server.url)
        assert await connection.fetchval("SELECT number FROM numbers") == 1
        await connection.close()


async def test_a_cut_relay_ends_connections_and_refuses_new_ones(postgres_url: str) -> None:
    with Relay(postgres_url) as relay:
        connection = await asyncpg.connect(relay.url)
        assert await connection.fetchval("SELECT 1") == 1

        relay.cut()

        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.fetchval("SELECT 1")
        with pytest.raises(ConnectionRefusedError):
            await asyncpg.connect(relay.url)

        relay.heal()

        connection = await asyncpg.connect(relay.url)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()


async def test_a_frozen_relay_says_nothing_until_it_is_healed(postgres_url: str) -> None:
    with Relay(postgres_url) as relay:
        connection = await asyncpg.connect(relay.url)

        relay.freeze()

        question = asyncio.create_task(connection.fetchval("SELECT 1"))
        newcomer = asyncio.create_task(asyncpg.connect(relay.url))
        done, _ = await asyncio.wait({question, newcomer}, timeout=0.2)
        assert not done

        relay.heal()

        assert await question == 1
        await (await newcomer).close()
        await connection.close()
