"""A running server, a client of it, and a receiver for its callbacks."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import Cli
from tests.real_server.databases import Database
from tests.real_server.server_process import ServerProcess
from tests.real_server.shared_servers import SharedServers


@pytest.fixture
async def server(tmp_path: Path, database: Database) -> AsyncIterator[ServerProcess]:
    """A server of the test's own."""
    async with ServerProcess(tmp_path, **database.settings) as process:
        yield process


@pytest.fixture(scope="session")
def shared_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    servers = SharedServers(tmp_path_factory.mktemp("shared"))
    yield servers
    servers.close()


@pytest.fixture
async def shared_server(database: Database, shared_servers: SharedServers) -> ServerProcess:
    """A server that tests use in turn, with the timers of earlier tests. A module whose tests can
    all use it overrides `server` with it."""
    return await shared_servers.server(database)


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
