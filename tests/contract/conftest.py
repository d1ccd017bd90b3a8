"""Tests of the bus in memory run on virtual time."""

import asyncio
from collections.abc import Callable

import pytest

from duetime.testing.virtual_loop import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    on_virtual_time = "TestMemoryBus" in item.nodeid
    return {"virtual": VirtualTimeLoop} if on_virtual_time else {"real": asyncio.new_event_loop}
