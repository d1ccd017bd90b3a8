"""A PostgreSQL store in a schema of its own, and a second way to look at its tables."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import (
    ANY_PLAN,
    LISTS_BY_INDEX,
    PLANS_BY_INDEX,
    Connection,
    connected,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture
def options(postgres_url: str, postgres_schema: str) -> PostgresOptions:
    return PostgresOptions(url=postgres_url, schema=postgres_schema)


@pytest.fixture
async def store(options: PostgresOptions) -> AsyncIterator[PostgresStore]:
    """Opened and empty but for the namespace "default" of 16 shards."""
    store = PostgresStore(options)
    await store.open()
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
    """A connection like those that the store uses."""
    async with connected(options, PLANS_BY_INDEX) as connection:
        yield connection


@pytest.fixture
async def list_planner(options: PostgresOptions, store: PostgresStore) -> AsyncIterator[Connection]:
    """A connection like those that the store reads lists with."""
    async with connected(options, LISTS_BY_INDEX) as connection:
        yield connection
