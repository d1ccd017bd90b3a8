"""The contract of shared stores, on the store that needs no server."""

from collections.abc import AsyncIterator, Callable

import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.memory import MemoryStore
from duetime.testing.store_contract import MembershipContract, SharedStore

STORES: dict[str, Callable[[], SharedStore]] = {
    "memory": MemoryStore,
}


@pytest.fixture(params=list(STORES))
async def shared_store(request: pytest.FixtureRequest) -> AsyncIterator[SharedStore]:
    store = STORES[request.param]()
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    yield store
    await store.close()


class TestMembershipContract(MembershipContract):
    pass
