"""The store contract, on every store."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

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
from tests.contract.stores import SHARED_STORES, STORES, Site, Storage, site_of


@pytest_asyncio.fixture(params=STORES, scope="module", loop_scope="module")
async def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    site = site_of(request.param, tmp_path_factory.mktemp("store"), request)
    yield site
    await site.close()


@pytest_asyncio.fixture(loop_scope="module")
async def storage(site: Site) -> AsyncIterator[Storage]:
    storage = await site.open_empty()
    await storage.store.add_namespace(Namespace("default", 16))
    yield storage
    await site.put_back(storage)


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


@pytest.mark.parametrize("site", SHARED_STORES, indirect=True)
class TestMembershipContract(MembershipContract):
    pass
