"""Migrations: each is applied once, by one node, and never undone."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from duetime.domain.bulk import BulkOperation
from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import TimerStatus
from duetime.stores.operation_rows import operation_text
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore, schema
from duetime.stores.postgres.connections import ANY_PLAN, Row, connected
from duetime.testing.store_contract.redriving import operation
from duetime.testing.store_contract.steps import (
    at,
    claim,
    completion,
    create,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return new_options


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


async def test_schemas_are_migrated_separately(options: PostgresOptions) -> None:
    await schema.migrate(options)
    elsewhere = replace(options, schema=f"{options.schema}_not")
    assert await schema.check(elsewhere) == (None, schema.newest_version())


async def test_a_newer_schema_is_refused(options: PostgresOptions) -> None:
    await schema.migrate(options)
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute("INSERT INTO applied_migrations VALUES (1000)")
    newest = schema.newest_version()
    message = (
        "the database has schema version 1000, but this release of Duetime knows only"
        f" version {newest}: start a newer release"
    )
    for refused in (schema.migrate(options), PostgresStore(options).open()):
        with pytest.raises(StoreUnavailable) as caught:
            await refused
        assert caught.value.message == message
    assert await schema.check(options) == (1000, newest)


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ("DELETE FROM applied_migrations", "all entries"),
        ("UPDATE applied_migrations SET version = 1000 WHERE version = 1", "1"),
    ],
)
async def test_a_schema_whose_list_of_migrations_has_gaps_is_refused(
    options: PostgresOptions, change: str, lacking: str
) -> None:
    await schema.migrate(options)
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(change)
    for refused in (
        schema.check(options),
        schema.migrate(options),
        PostgresStore(options).open(),
        PostgresInspector(options).open(),
    ):
        with pytest.raises(SchemaRefused, match=f"not whole: .*lacks {lacking}. Restore a backup"):
            await refused


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


_SECOND_MIGRATION = """
    LOCK TABLE pending_timers, executing_timers, finished_timers IN ACCESS EXCLUSIVE MODE;
    ALTER TABLE namespaces ADD COLUMN note text NOT NULL DEFAULT 'none';
"""


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Turns this release into one with another migration."""
    scripts = [*schema.migrations(), (schema.newest_version() + 1, _SECOND_MIGRATION)]
    return lambda: monkeypatch.setattr(schema, "migrations", lambda: scripts)


async def test_timers_of_the_previous_release_survive_an_upgrade(
    options: PostgresOptions, store: PostgresStore, next_release: Callable[[], None]
) -> None:
    previous = schema.newest_version()
    timers = [make_timer("stored"), make_timer("canceled")]
    await create(store, *timers)
    await store.cancel_if_pending(timers[1].key, at(1))
    next_release()
    upgraded = PostgresStore(options)
    await upgraded.open()
    assert await schema.check(options) == (previous + 1, previous + 1)
    assert await upgraded.namespaces() == [Namespace("default", 16, NamespaceOptions())]
    assert (await stored(upgraded, timers[1].key)).status is TimerStatus.CANCELED
    # A node of the previous release is still running on the new schema.
    await create(store, make_timer("later"))
    leases = await own_shards(upgraded)
    claims = await claim(upgraded, leases)
    assert {claimed.id for claimed in claims} == {"stored", "later"}
    assert await upgraded.settle([completion(claimed) for claimed in claims]) == [True, True]
    assert (await stored(store, timers[0].key)).status is TimerStatus.COMPLETED
    await upgraded.close()


async def test_operations_of_a_node_of_an_earlier_release_are_found_by_their_namespace(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was added before the migration, the other one by a node that does not know of it."""
    insert = """
        INSERT INTO operations (id, created_at, updated_at, version, is_running, document)
        VALUES ($1, $2, $3, $4, $5, $6)
    """
    scripts = [each for each in schema.migrations() if each[0] < 8]
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", lambda: scripts)
        await schema.migrate(options)
    old, later = (operation(number, namespace='odd "name" é') for number in range(2))
    async with connected(options, ANY_PLAN) as database:
        await database.execute(insert, *_row_of(old))
        store = PostgresStore(options)
        await store.open()
        await database.execute(insert, *_row_of(later))
    found = await store.operations(running=False, limit=9, namespaces=[old.namespace])
    await store.close()
    assert list(found) == [later, old]


def _row_of(kept: BulkOperation) -> tuple[Any, ...]:
    instants = (kept.created_at, kept.updated_at)
    return kept.id, *instants, kept.version, kept.is_running, operation_text(kept)


async def test_a_migration_gives_way_to_nodes_at_work(
    options: PostgresOptions, store: PostgresStore, next_release: Callable[[], None]
) -> None:
    """A settlement locks the tables in another order than the migration does."""
    next_release()
    async with (
        connected(options, ANY_PLAN) as database,
        held(options, "LOCK TABLE executing_timers IN ROW EXCLUSIVE MODE") as settlement,
    ):
        # If neither gave way, the settlement would fail, and soon.
        await settlement.run("SET deadlock_timeout = '500ms'")
        migration = asyncio.create_task(schema.migrate(options))
        await settlement.is_waited_for(database)
        await settlement.run("LOCK TABLE pending_timers IN ROW EXCLUSIVE MODE")
        assert not migration.done()
        await settlement.commit()
        assert await migration == [schema.newest_version()]


async def test_a_migration_that_never_gets_the_tables_says_so(
    options: PostgresOptions,
    store: PostgresStore,
    next_release: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    previous = schema.newest_version()
    next_release()
    monkeypatch.setattr(schema, "_MAX_TRIES", 2)
    async with held(options, "LOCK TABLE executing_timers IN ROW EXCLUSIVE MODE"):
        with pytest.raises(StoreUnavailable, match="its tables are in use all the time: try again"):
            await schema.migrate(options)
        assert await schema.check(options) == (previous, previous + 1)
    assert await schema.migrate(options) == [previous + 1]


async def test_a_schema_from_before_the_first_release_is_refused(
    options: PostgresOptions,
) -> None:
    """Its version table has another name, so its numbers are never mistaken for today's."""
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(
            f"CREATE SCHEMA {options.schema};"
            "CREATE TABLE schema_version (version integer PRIMARY KEY);"
            "CREATE TABLE pending_timers (created_at bigint NOT NULL);"
            "INSERT INTO schema_version SELECT generate_series(1, 8)"
        )
    for use in (
        schema.check,
        schema.migrate,
        lambda options: PostgresStore(options).open(),
        lambda options: PostgresInspector(options).open(),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            await use(options)
        assert caught.value.message == (
            f"PostgreSQL ({options.place}): the schema '{options.schema}' is from before the first"
            " release of Duetime and cannot be upgraded: set PG_SCHEMA to another name (to keep the"
            " timers, export them with the version that wrote the schema, and import them)"
        )
    async with connected(options, ANY_PLAN) as connection:
        assert await connection.fetchval("SELECT to_regclass('applied_migrations')") is None


async def test_a_version_table_of_another_program_is_left_alone(options: PostgresOptions) -> None:
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(
            f"CREATE SCHEMA {options.schema}; CREATE TABLE schema_version (version integer)"
        )
    assert await schema.check(options) == (None, schema.newest_version())
    assert await schema.migrate(options) != []
    async with connected(options, ANY_PLAN) as connection:
        assert await connection.fetchval("SELECT count(*) FROM schema_version") == 0


class OtherServer:
    """A connection to a server of another kind."""

    def __init__(self, version: int, encoding: str) -> None:
        self._answer = (version, encoding)

    async def fetchrow(self, statement: str, *values: Any) -> Row:
        return self._answer

    fetch = fetchval = execute = cursor = transaction = cast(Any, fetchrow)


@pytest.mark.parametrize(
    ("version", "encoding", "problem"),
    [
        (140_013, "UTF8", "is version 14, but Duetime needs 15 or newer"),
        (150_000, "SQL_ASCII", "keeps text as SQL_ASCII, but Duetime needs"),
    ],
)
async def test_an_unsuitable_server_is_refused(
    options: PostgresOptions, version: int, encoding: str, problem: str
) -> None:
    with pytest.raises(StoreUnavailable, match=problem):
        await schema.check_server(OtherServer(version, encoding), options)
