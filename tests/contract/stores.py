"""All stores, for the suites that run on each of them. A new store is one line in `site_of`.

`DUETIME_TEST_STORES=memory,sqlite` leaves the others out.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.stores.memory import MemoryStore
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract import Store
from tests.postgres.emptying import SchemaEmptier
from tests.postgres.options import store_options

STORES = os.environ.get("DUETIME_TEST_STORES", "memory,sqlite,postgresql").split(",")
SHARED_STORES = [name for name in STORES if name != "sqlite"]
"""Stores that implement the ports of a cluster."""


class Storage:
    """A storage and the store that has it open."""

    def __init__(self, make_store: Callable[[], Store]) -> None:
        self._make_store = make_store
        self.store = make_store()

    async def reopen(self) -> Store:
        await self.store.close()
        if self.store.capabilities.durable:
            self.store = self._make_store()
        await self.store.open()
        return self.store


class Site:
    """Place of the storages that tests use one after the other: a new one for each test."""

    def __init__(self, choose_storage: Callable[[], Callable[[], Store]]) -> None:
        self._choose_storage = choose_storage

    async def open_empty(self) -> Storage:
        """A storage without timers, opened."""
        storage = Storage(self._choose_storage())
        await storage.store.open()
        return storage

    async def put_back(self, storage: Storage) -> None:
        """Take a storage that its test needs no longer."""
        await storage.store.close()

    async def close(self) -> None:
        """Close the store that is still open, if any."""


class PostgresSite(Site):
    """One schema, emptied for each test, and one store: connecting and planning take longer than
    most tests."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        super().__init__(lambda: lambda: PostgresStore(self._options))
        self._storage: Storage | None = None
        self._emptier = SchemaEmptier(options)

    async def open_empty(self) -> Storage:
        storage, self._storage = self._storage, None
        if storage is None:
            storage = await super().open_empty()
        await self._emptier.empty()
        return storage

    async def put_back(self, storage: Storage) -> None:
        try:
            await storage.store.namespaces()
            self._storage = storage
        except StoreUnavailable:
            # The test has closed the store.
            self._storage = None

    async def close(self) -> None:
        if self._storage is not None:
            await self._storage.store.close()
        await self._emptier.close()


def site_of(store_name: str, directory: Path, request: pytest.FixtureRequest) -> Site:
    """The site of a store. The database server is started only if the store needs it."""
    match store_name:
        case "memory":
            return Site(lambda: MemoryStore)
        case "sqlite":
            return Site(lambda: _sqlite_file(directory))
        case "postgresql":
            url, schema = map(request.getfixturevalue, ("postgres_url", "contract_schema"))
            return PostgresSite(store_options(url, schema))
    raise AssertionError(store_name)


def _sqlite_file(directory: Path) -> Callable[[], Store]:
    path = directory / f"{secrets.token_hex(8)}.db"
    return lambda: SqliteStore(path)
