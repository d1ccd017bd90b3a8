"""A Prometheus with the alert rules, and a receiver for the callbacks of servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.monitoring.prometheus import Prometheus
from tests.real_server.callback_receiver import CallbackReceiver


@pytest.fixture
async def prometheus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prometheus]:
    directory: Path = tmp_path_factory.mktemp("prometheus")
    async with Prometheus(directory) as prometheus:
        yield prometheus


@pytest.fixture
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with CallbackReceiver() as receiver:
        yield receiver
