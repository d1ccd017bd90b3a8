"""A running server, a client of it, and a receiver for its callbacks."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.callback_receiver import CallbackReceiver
from tests.e2e.command import Cli
from tests.e2e.databases import Database
from tests.e2e.server_process import ServerProcess


@pytest.fixture
async def server(tmp_path: Path, database: Database) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path, **database.settings) as process:
        yield process


@pytest.fixture
async def api(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with server.client() as client:
        yield client


@pytest.fixture
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with CallbackReceiver() as receiver:
        yield receiver


@pytest.fixture
def cli(server: ServerProcess, tmp_path: Path) -> Cli:
    return Cli(server, tmp_path)
