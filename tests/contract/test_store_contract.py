"""The store contract, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.memory import MemoryStore
from duetime.stores.postgres import PostgresStore
from duetime.testing.store_contract import (
    MembershipContract,
    Reopen,
    SharedStore,
    Store,
    StoreContract,
)
from tests.contract.stores import SHARED_STORES, STORES, Place, Storage, url_for


@pytest.fixture(params=list(STORES))
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    storage = Storage(request.param, Place(tmp_path, url_for(request.param, request)))
    await storage.store.open()
    await storage.store.add_namespace(Namespace("default", 16))
    yield storage
    await storage.discard()


@pytest.fixture
def store(storage: Storage) -> Store:
    return storage.store


@pytest.fixture
def shared_store(storage: Storage) -> SharedStore:
    assert isinstance(storage.store, MemoryStore | PostgresStore)
    return storage.store


@pytest.fixture
def reopen(storage: Storage) -> Reopen:
    return storage.reopen


class TestStoreContract(StoreContract):
    pass


@pytest.mark.parametrize("storage", SHARED_STORES, indirect=True)
class TestMembershipContract(MembershipContract):
    pass
