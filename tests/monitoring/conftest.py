"""A Prometheus with the alert rules, and a receiver for the callbacks of servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.monitoring.prometheus import SCRAPE_MS, Prometheus
from tests.real_server.callback_receiver import CallbackReceiver


@pytest.fixture
async def prometheus(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Prometheus]:
    """Scrapes every 500 ms, or as rarely as a test asks for by a parameter."""
    directory: Path = tmp_path_factory.mktemp("prometheus")
    async with Prometheus(directory, getattr(request, "param", SCRAPE_MS)) as prometheus:
        yield prometheus


@pytest.fixture
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with CallbackReceiver() as receiver:
        yield receiver
