"""The database of a server under test."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract import Store

on_every_database = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
"""A test then runs as `test_x[sqlite]` and `test_x[postgresql]`."""

on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


class Database(Protocol):
    @property
    def settings(self) -> dict[str, str]:
        """The settings of a server on this database."""
        ...

    def store(self) -> Store:
        """A store on this database, not opened yet."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    path: Path

    @property
    def settings(self) -> dict[str, str]:
        return {"TIMER_DB_PATH": str(self.path)}

    def store(self) -> Store:
        return SqliteStore(self.path)


@dataclass(frozen=True, slots=True)
class PostgresDatabase:
    url: str = field(repr=False)
    schema: str

    @property
    def settings(self) -> dict[str, str]:
        return {"DATABASE_URL": self.url, "PG_SCHEMA": self.schema}

    def store(self) -> Store:
        from duetime.stores.postgres import PostgresStore
        from tests.postgres.options import store_options

        return PostgresStore(store_options(self.url, self.schema))


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database: SQLite, unless the test is marked with `on_postgresql` or
    `on_every_database`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return SqliteDatabase(tmp_path / "timers.db")
    return PostgresDatabase(
        request.getfixturevalue("postgres_url"), request.getfixturevalue("postgres_schema")
    )
