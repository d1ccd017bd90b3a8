"""The lines that `duetime backup` and `duetime restore` print for PostgreSQL, run as they are."""

from pathlib import Path

import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.postgres import PostgresStore, schema
from duetime.stores.postgres.connections import ANY_PLAN, connected
from tests.postgres.fixtures import MakePostgres
from tests.postgres.options import store_options
from tests.real_server.printed_commands import run_printed_lines

pytestmark = pytest.mark.e2e

ADD_NAMESPACE = "INSERT INTO namespaces (name, num_shards, options) VALUES ('kept', 4, '{}')"


async def test_an_upgrade_is_undone(
    make_postgres: MakePostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the schema has a table that Duetime does not know."""
    with make_postgres() as server:
        options = store_options(server.url)
        with monkeypatch.context() as release_before:
            older = schema.migrations()[:-2]
            release_before.setattr(schema, "migrations", lambda: older)
            await schema.migrate(options)
        async with connected(options, ANY_PLAN) as connection:
            await connection.execute(ADD_NAMESPACE)
        assert await run_printed_lines("backup", tmp_path, server.url) == ["pg_dump"]

        upgraded = PostgresStore(options)
        await upgraded.open()
        await upgraded.add_namespace(Namespace("new", 2))
        await upgraded.close()
        async with connected(options, ANY_PLAN) as connection:
            await connection.execute("CREATE TABLE reports (day date)")
        assert await run_printed_lines("restore", tmp_path, server.url) == ["psql", "pg_restore"]

        assert await schema.check(options) == (older[-1][0], schema.newest_version())
        restored = PostgresStore(options)
        await restored.open()
        assert [each.name for each in await restored.namespaces()] == ["kept"]
        await restored.close()
        async with connected(options, ANY_PLAN) as connection:
            assert await connection.fetchval("SELECT count(*) FROM duetime_before.reports") == 0
