"""The store contract, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.domain.keys import Namespace
from duetime.testing.store_contract import Reopen, Store, StoreContract
from tests.contract.stores import STORES, Storage


@pytest.fixture(params=list(STORES))
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    storage = Storage(STORES[request.param], tmp_path)
    await storage.store.open()
    await storage.store.add_namespace(Namespace("default", 16))
    yield storage
    await storage.store.close()


@pytest.fixture
def store(storage: Storage) -> Store:
    return storage.store


@pytest.fixture
def reopen(storage: Storage) -> Reopen:
    return storage.reopen


class TestStoreContract(StoreContract):
    pass
