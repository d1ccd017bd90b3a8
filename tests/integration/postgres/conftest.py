"""A PostgreSQL store, and connections that look at its tables."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import ANY_PLAN, PLANS_BY_INDEX, Connection, connected
from tests.postgres.emptying import SchemaEmptier
from tests.postgres.fixtures import dropped_schema
from tests.postgres.options import store_options


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def reused_schema(postgres_url: str) -> Iterator[str]:
    """The schema of all tests that need no new one, since making one takes longer than most."""
    with dropped_schema(postgres_url) as schema:
        yield schema


@pytest.fixture
def options(postgres_url: str, reused_schema: str) -> PostgresOptions:
    return store_options(postgres_url, reused_schema)


@pytest.fixture
def new_options(postgres_url: str, postgres_schema: str) -> PostgresOptions:
    """Options with a schema that does not exist yet."""
    return store_options(postgres_url, postgres_schema)


@pytest.fixture
async def store(options: PostgresOptions) -> AsyncIterator[PostgresStore]:
    """Opened and empty but for the namespace "default" of 16 shards."""
    store = PostgresStore(options)
    await store.open()
    emptier = SchemaEmptier(options)
    await emptier.empty()
    await emptier.close()
    await store.add_namespace(Namespace("default", 16))
    yield store
    await store.close()


@pytest.fixture
async def database(options: PostgresOptions, store: PostgresStore) -> AsyncIterator[Connection]:
    """A connection that finds the store's tables by their names."""
    async with connected(options, ANY_PLAN) as connection:
        yield connection


@pytest.fixture
async def planner(options: PostgresOptions, store: PostgresStore) -> AsyncIterator[Connection]:
    """A connection like those of creates, changes and the engine."""
    async with connected(options, PLANS_BY_INDEX) as connection:
        yield connection
