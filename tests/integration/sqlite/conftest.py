"""A SQLite store on a file of its own."""

import os
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


class SmallDisk:
    """Tells how much of the disk is free."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self._real = os.statvfs(path.parent)
        self._free_bytes: int | None = None
        patch.setattr(os, "statvfs", self._status)

    def set_free_bytes(self, free_bytes: int) -> None:
        self._free_bytes = free_bytes

    def _status(self, _: object) -> os.statvfs_result:
        if self._free_bytes is None:
            return self._real
        free_blocks = self._free_bytes // self._real.f_frsize
        return os.statvfs_result((*self._real[:4], free_blocks, *self._real[5:]))


@pytest.fixture
def small_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallDisk:
    return SmallDisk(path, monkeypatch)


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
