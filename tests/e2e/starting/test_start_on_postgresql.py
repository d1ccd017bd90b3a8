"""A server that cannot use its PostgreSQL database says so at its start, without the password."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.postgres.relay import Relay
from tests.real_server.command import Finished, run_command
from tests.real_server.databases import Database, on_postgresql
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = pytest.mark.e2e

START_SECONDS = 15
PASSWORD = "do-not-show-me"


async def test_a_refused_connection_is_reported(tmp_path: Path, postgres_url: str) -> None:
    with Relay(postgres_url) as relay:
        relay.cut()
        line = await refusal(tmp_path, relay.url)
    assert str(urlsplit(relay.url).port) in line


async def test_a_database_that_does_not_answer_is_reported(
    tmp_path: Path, postgres_url: str
) -> None:
    with Relay(postgres_url) as relay:
        relay.freeze()
        line = await refusal(tmp_path, relay.url)
    assert str(urlsplit(relay.url).port) in line


async def test_an_unknown_user_is_reported(tmp_path: Path, postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    host = parts.netloc.rpartition("@")[2]
    stranger = urlunsplit(parts._replace(netloc=f"stranger:{PASSWORD}@{host}"))
    assert "stranger" in await refusal(tmp_path, stranger)


async def test_an_unknown_database_is_reported(tmp_path: Path, postgres_url: str) -> None:
    elsewhere = urlunsplit(urlsplit(postgres_url)._replace(path="/nowhere"))
    assert "nowhere" in await refusal(tmp_path, elsewhere)


@on_postgresql
async def test_several_servers_start_on_an_empty_database_at_once(
    tmp_path: Path, database: Database
) -> None:
    servers = [ServerProcess(tmp_path, **database.settings) for _ in range(3)]
    try:
        await asyncio.gather(*(server.start() for server in servers))
        for server in servers:
            async with server.client() as api:
                assert (await api.get("/healthz")).status_code == 200
    finally:
        await asyncio.gather(*(server.kill() for server in servers))


async def refusal(directory: Path, url: str) -> str:
    """The line in which the server refuses this database."""
    environ = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0", "DATABASE_URL": url}
    async with asyncio.timeout(START_SECONDS):
        finished: Finished = await run_command("serve", directory=directory, **environ)
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert PASSWORD not in line
    assert str(urlsplit(url).password) not in line
    return line
