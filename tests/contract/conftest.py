"""Loops for the contracts: virtual time for the bus in memory, one loop for the store contract."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duetime.testing.virtual_loop import VirtualTimeLoop
from tests.postgres.fixtures import dropped_schema

STORE_CONTRACT = Path(__file__).with_name("test_store_contract.py")


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    on_virtual_time = "TestMemoryBus" in item.nodeid
    return {"virtual": VirtualTimeLoop} if on_virtual_time else {"real": asyncio.new_event_loop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep connections open from test to test. A mark in the module would come after those of the
    contract's classes, and have no effect."""
    for item in items:
        if item.path == STORE_CONTRACT:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(scope="session")
def contract_schema(postgres_url: str) -> Iterator[str]:
    """The schema that the tests of the store contract use one after the other."""
    with dropped_schema(postgres_url) as schema:
        yield schema
