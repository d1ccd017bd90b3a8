"""Migrations: once, by whoever is first, and never backwards."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import TimerStatus
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore, schema
from duetime.stores.postgres.connections import ANY_PLAN, Row, connected
from duetime.testing.store_contract.steps import at, claim, completion, own_shards, stored
from tests.postgres_store.held import held


async def test_a_new_database_is_migrated_once(options: PostgresOptions) -> None:
    newest = schema.newest_version()
    assert await schema.check(options) == (None, newest)
    assert await schema.migrate(options) == list(range(1, newest + 1))
    assert await schema.check(options) == (newest, newest)
    assert await schema.migrate(options) == []


async def test_nodes_that_start_together_migrate_once(options: PostgresOptions) -> None:
    applied = await asyncio.gather(*(schema.migrate(options) for _ in range(5)))
    assert sorted(applied, key=len)[:-1] == [[]] * 4
    assert len(max(applied, key=len)) == schema.newest_version()


async def test_schemas_are_apart(options: PostgresOptions) -> None:
    await schema.migrate(options)
    elsewhere = replace(options, schema=f"{options.schema}_not")
    assert await schema.check(elsewhere) == (None, schema.newest_version())


async def test_a_newer_schema_is_refused(options: PostgresOptions) -> None:
    await schema.migrate(options)
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute("INSERT INTO schema_version VALUES (1000)")
    newest = schema.newest_version()
    message = (
        "the database has schema version 1000, but this release of duetime knows only"
        f" version {newest}: start a newer release"
    )
    for refused in (schema.migrate(options), PostgresStore(options).open()):
        with pytest.raises(StoreUnavailable) as caught:
            await refused
        assert caught.value.message == message
    assert await schema.check(options) == (1000, newest)


async def test_an_inspector_changes_nothing(options: PostgresOptions) -> None:
    with pytest.raises(StoreUnavailable, match="run duetime migrate"):
        await PostgresInspector(options).open()
    assert await schema.check(options) == (None, schema.newest_version())


async def test_an_interrupted_migration_leaves_nothing(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = [*schema.migrations(), (99, "CREATE TABLE half (); SELECT 1 / 0")]
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: scripts)
        with pytest.raises(Exception, match="division by zero"):
            await schema.migrate(options)
    assert await schema.check(options) == (None, schema.newest_version())


async def migrate_up_to(
    version: int, options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a release did that knew no later version."""
    scripts = schema.migrations()[:version]
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: scripts)
        await schema.migrate(options)


_OF_VERSION_3 = """
    INSERT INTO namespaces VALUES ('default', 16);
    INSERT INTO shards SELECT n, 0, NULL FROM generate_series(0, 15) AS n;
    INSERT INTO shard_fences SELECT role, n, 0 FROM generate_series(0, 1) AS role,
        generate_series(0, 15) AS n;
"""

_CREATE_IN_VERSION_3 = """
    SELECT status FROM create_timers(
        true, ARRAY['default'], ARRAY[$1::text], ARRAY[1], ARRAY['\\x01'::bytea], ARRAY[1::bigint],
        ARRAY[1::bigint], ARRAY[2::bigint], ARRAY[2::bigint], ARRAY['d'], ARRAY['{"type":"bus"}'],
        ARRAY[NULL], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL::bytea], ARRAY[false])
"""


async def test_what_the_previous_release_stored_is_there_afterwards(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate_up_to(3, options, monkeypatch)
    key, canceled = TimerKey("default", "stored"), TimerKey("default", "canceled")
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(_OF_VERSION_3)
        for name in ("stored", "canceled"):
            assert await connection.fetch(_CREATE_IN_VERSION_3, name) == []
    store = PostgresStore(options)
    await store.open()
    assert await store.namespaces() == [Namespace("default", 16, NamespaceOptions())]
    assert (await stored(store, key)).status is TimerStatus.PENDING
    await store.cancel_if_pending(canceled, at(1))
    leases = await own_shards(store)
    (claimed,) = await claim(store, leases)
    assert await store.settle([completion(claimed)]) == [True]
    assert (await stored(store, key)).status is TimerStatus.COMPLETED
    async with connected(options, ANY_PLAN) as connection:
        # A node of that release may still be running.
        assert await connection.fetchval(_CREATE_IN_VERSION_3, "stored") == TimerStatus.COMPLETED
    await store.close()


async def test_a_migration_gives_way_to_nodes_at_work(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A settlement locks the tables in another order than the migration does."""
    await migrate_up_to(6, options, monkeypatch)
    async with (
        connected(options, ANY_PLAN) as database,
        held(options, "LOCK TABLE executing_timers IN ROW EXCLUSIVE MODE") as settlement,
    ):
        # If nobody gives way it is the settlement that fails, and soon.
        await settlement.run("SET deadlock_timeout = '500ms'")
        migration = asyncio.create_task(schema.migrate(options))
        await settlement.is_waited_for(database)
        await settlement.run("LOCK TABLE pending_timers IN ROW EXCLUSIVE MODE")
        assert not migration.done()
        await settlement.commit()
        assert await migration == [7, 8]


async def test_a_migration_that_never_gets_the_tables_says_so(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate_up_to(6, options, monkeypatch)
    monkeypatch.setattr(schema, "_MAX_TRIES", 2)
    async with held(options, "LOCK TABLE executing_timers IN ROW EXCLUSIVE MODE"):
        with pytest.raises(StoreUnavailable, match="its tables are in use all the time: try again"):
            await schema.migrate(options)
        assert await schema.check(options) == (6, schema.newest_version())
    assert await schema.migrate(options) == [7, 8]


class OtherServer:
    """A connection to a server of another kind."""

    def __init__(self, version: int, encoding: str) -> None:
        self._answer = (version, encoding)

    async def fetchrow(self, statement: str, *values: Any) -> Row:
        return self._answer

    fetch = fetchval = execute = transaction = cast(Any, fetchrow)


@pytest.mark.parametrize(
    ("version", "encoding", "problem"),
    [
        (140_013, "UTF8", "is version 14, but duetime needs 15 or newer"),
        (150_000, "SQL_ASCII", "keeps text as SQL_ASCII, but duetime needs"),
    ],
)
async def test_a_server_that_will_not_do_is_refused(
    options: PostgresOptions, version: int, encoding: str, problem: str
) -> None:
    with pytest.raises(StoreUnavailable, match=problem):
        await schema.check_server(OtherServer(version, encoding), options)
