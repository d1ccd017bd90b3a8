"""Commits are on disk before they are answered, whatever the settings of the database."""

import asyncpg
import structlog

from duetime.domain.namespace import Namespace
from duetime.stores.postgres import PostgresStore
from duetime.testing.store_contract.steps import create
from duetime.testing.timers import make_timer
from tests.postgres.options import store_options


async def test_a_role_that_does_not_wait_for_the_disk_is_overruled(
    postgres_url: str, postgres_schema: str
) -> None:
    database = await asyncpg.connect(postgres_url)
    role, name = await database.fetchrow("SELECT current_user, current_database()")
    scope = f'ROLE "{role}" IN DATABASE "{name}"'
    await database.execute(f"ALTER {scope} SET synchronous_commit = off")
    try:
        store = PostgresStore(store_options(postgres_url, postgres_schema))
        await store.open()
        await store.add_namespace(Namespace("default", 16))
        await _note_setting_of_creates(database, postgres_schema)
        await create(store, make_timer())
        noted = await database.fetchval(f"SELECT setting FROM {postgres_schema}.noted")
        await store.close()
    finally:
        await database.execute(f"ALTER {scope} RESET synchronous_commit")
        await database.close()
    assert noted == "on"


async def test_a_server_that_does_not_sync_is_logged(
    postgres_url: str, postgres_schema: str
) -> None:
    database = await asyncpg.connect(postgres_url)
    fsync = await database.fetchval("SHOW fsync")
    await database.close()
    store = PostgresStore(store_options(postgres_url, postgres_schema))
    with structlog.testing.capture_logs() as logs:
        await store.open()
    await store.close()
    settings = {entry["setting"] for entry in logs if entry["event"] == "store.not_durable"}
    assert ("fsync" in settings) == (fsync == "off")


async def _note_setting_of_creates(database: asyncpg.Connection, schema: str) -> None:
    """A trigger that notes `synchronous_commit` of each inserting connection."""
    await database.execute(
        f"""
        CREATE TABLE {schema}.noted (setting text);
        CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO {schema}.noted VALUES (current_setting('synchronous_commit'));
            RETURN NULL;
        END $$;
        CREATE TRIGGER noting AFTER INSERT ON {schema}.pending_timers
            FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note();
        """
    )
