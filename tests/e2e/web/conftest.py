"""A server with the usual protection of callbacks, and a browser without scripts."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.web.web_client import WebClient
from tests.real_server.server_process import ServerProcess


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path, CALLBACK_NETWORKS="public") as process:
        yield process


@pytest.fixture
def web(api: httpx.AsyncClient) -> WebClient:
    return WebClient(api)
