"""All stores, for the suites that run on each of them. A new store is one line here.

`DUETIME_TEST_STORES=memory,sqlite` leaves the others out.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from duetime.stores.memory import MemoryStore
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract import Store


class Place:
    """The directory of a store, and its database if the test has one."""

    def __init__(self, directory: Path, postgres_url: str | None = None) -> None:
        self.directory = directory
        self._postgres_url = postgres_url
        self._schema = f"test_{secrets.token_hex(8)}"

    @property
    def postgres(self) -> PostgresOptions:
        assert self._postgres_url is not None
        return PostgresOptions(url=self._postgres_url, schema=self._schema)

    async def clear(self) -> None:
        """Drop the schema, which would outlive the directory."""
        if self._postgres_url is not None:
            connection = await asyncpg.connect(self._postgres_url)
            await connection.execute(
                f"SET client_min_messages = warning;DROP SCHEMA IF EXISTS {self._schema} CASCADE"
            )
            await connection.close()


_STORES: dict[str, Callable[[Place], Store]] = {
    "memory": lambda place: MemoryStore(),
    "sqlite": lambda place: SqliteStore(place.directory / "timers.db"),
    "postgresql": lambda place: PostgresStore(place.postgres),
}
_CHOSEN = os.environ.get("DUETIME_TEST_STORES", ",".join(_STORES)).split(",")
STORES = {name: _STORES[name] for name in _CHOSEN}
SHARED_STORES = [name for name in STORES if name != "sqlite"]
"""The stores of which several processes may share one, or that behave as if they did."""


def url_for(store_name: str, request: pytest.FixtureRequest) -> str | None:
    """The database server, which is started only if the store needs one."""
    if store_name != "postgresql":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


class Storage:
    """One storage and the store that has it open."""

    def __init__(self, store_name: str, place: Place) -> None:
        self._make_store = STORES[store_name]
        self._place = place
        self.store = self._make_store(place)

    async def reopen(self) -> Store:
        await self.store.close()
        if self.store.capabilities.durable:
            self.store = self._make_store(self._place)
        await self.store.open()
        return self.store

    async def discard(self) -> None:
        await self.store.close()
        await self._place.clear()
