"""A SQLite store on a file of its own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "timers.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    yield store
    await store.close()


@pytest.fixture
def database(path: Path, store: SqliteStore) -> Iterator[apsw.Connection]:
    """Another connection to the file of the store."""
    with closing(apsw.Connection(str(path))) as connection:
        yield connection
