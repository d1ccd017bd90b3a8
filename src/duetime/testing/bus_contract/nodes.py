"""The nodes that take part in a test of the suite."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from duetime.ports.bus import REDELIVER_AFTER_SECONDS, Bus

MakeBus = Callable[[], Bus]
"""Returns the bus of one more node on the same broker, not opened yet."""

AnotherBus = Callable[[], Awaitable[Bus]]
"""Returns the bus of one more node, opened."""

SOON_SECONDS = 0.3

hands_over_again_soon = pytest.mark.parametrize("redeliver_after_seconds", [SOON_SECONDS])
"""For tests in which a node receives a command and never acknowledges it."""


class Nodes:
    """Fixtures of the suite. Every node is closed at the end of the test."""

    @pytest.fixture
    def redeliver_after_seconds(self) -> float:
        """As outside of tests: no command is handed over again by accident."""
        return REDELIVER_AFTER_SECONDS

    @pytest_asyncio.fixture
    async def another_bus(self, make_bus: MakeBus) -> AsyncIterator[AnotherBus]:
        async with AsyncExitStack() as nodes:

            async def another_bus() -> Bus:
                bus = make_bus()
                nodes.push_async_callback(bus.close)
                await bus.open()
                return bus

            yield another_bus

    @pytest_asyncio.fixture
    async def bus(self, another_bus: AnotherBus) -> Bus:
        return await another_bus()
