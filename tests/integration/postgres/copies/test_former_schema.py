"""A target of the release before: migrated if it is empty, and left alone if it is in use."""

import pytest

from duetime.domain.errors import CopyRefused
from duetime.domain.instants import Instant
from duetime.stores.postgres import PostgresOptions, schema
from duetime.stores.postgres.connections import ANY_PLAN, connected
from duetime.stores.postgres.copying.target import opened_target

NOW = Instant(1_800_000_000_000_000)
NEWEST = schema.newest_version()
FORMER = NEWEST - 1


async def begin(options: PostgresOptions) -> None:
    async with opened_target(options) as target:
        await target.begin("a.db", "sqlite 1", NOW)


async def version(options: PostgresOptions) -> int | None:
    stored, _ = await schema.check(options)
    return stored


async def execute(options: PostgresOptions, statement: str) -> None:
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(statement)


@pytest.fixture
async def former(new_options: PostgresOptions, monkeypatch: pytest.MonkeyPatch) -> PostgresOptions:
    with monkeypatch.context() as patched:
        scripts = schema.migrations()[:FORMER]
        patched.setattr(schema, "migrations", lambda: scripts)
        await schema.migrate(new_options)
    return new_options


async def test_an_empty_schema_is_migrated(former: PostgresOptions) -> None:
    await begin(former)
    assert await version(former) == NEWEST
    await begin(former)


async def test_a_schema_in_use_is_refused_as_it_is(former: PostgresOptions) -> None:
    await execute(former, "INSERT INTO namespaces (name, num_shards) VALUES ('theirs', 2)")
    with pytest.raises(CopyRefused, match="is not empty: it has rows in namespaces"):
        await begin(former)
    assert await version(former) == FORMER


@pytest.mark.parametrize("finished_at", ["NULL", "2"])
async def test_the_target_of_another_copy_is_refused_as_it_is(
    former: PostgresOptions, finished_at: str
) -> None:
    await execute(
        former,
        "INSERT INTO copies (source, identity, timers, started_at, finished_at, left_out)"
        f" VALUES ('b.db', 'sqlite 2', 0, 1, {finished_at}, '{{}}')",
    )
    with pytest.raises(CopyRefused, match=r"of b\.db, and a\.db is another store"):
        await begin(former)
    assert await version(former) == FORMER


async def test_a_copy_that_has_ended_is_found_as_it_is(former: PostgresOptions) -> None:
    """A service of the release before may use it by now."""
    await execute(
        former,
        "INSERT INTO copies (source, identity, timers, started_at, finished_at, left_out)"
        " VALUES ('a.db', 'sqlite 1', 0, 1, 2, '{}');"
        "INSERT INTO namespaces (name, num_shards) VALUES ('ours', 2)",
    )
    await begin(former)
    assert await version(former) == FORMER
