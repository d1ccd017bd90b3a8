"""A server that cannot use its PostgreSQL database says so at its start, without the password."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.postgres.relay import Relay
from tests.real_server.command import Finished, run_command
from tests.real_server.databases import Database, PostgresDatabase, on_postgresql
from tests.real_server.server_process import API_KEY, ServerDied, ServerProcess
from tests.real_server.timer_requests import in_ms, timer_body

pytestmark = pytest.mark.e2e

START_SECONDS = 15
PASSWORD = "do-not-show-me"


async def test_a_refused_connection_is_reported(tmp_path: Path, postgres_url: str) -> None:
    with Relay(postgres_url) as relay:
        relay.cut()
        line = await refusal(tmp_path, relay.url, STARTUP_WAIT_SECONDS="0")
    assert str(urlsplit(relay.url).port) in line


async def test_a_database_that_does_not_answer_is_reported(
    tmp_path: Path, postgres_url: str
) -> None:
    with Relay(postgres_url) as relay:
        relay.freeze()
        line = await refusal(tmp_path, relay.url, STARTUP_WAIT_SECONDS="0", LOG_LEVEL="error")
    assert str(urlsplit(relay.url).port) in line


async def test_an_unknown_user_is_reported(tmp_path: Path, postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    host = parts.netloc.rpartition("@")[2]
    stranger = urlunsplit(parts._replace(netloc=f"stranger:{PASSWORD}@{host}"))
    assert "stranger" in await refusal(tmp_path, stranger)


async def test_an_unknown_database_is_reported(tmp_path: Path, postgres_url: str) -> None:
    elsewhere = urlunsplit(urlsplit(postgres_url)._replace(path="/nowhere"))
    assert "nowhere" in await refusal(tmp_path, elsewhere)


@pytest.fixture
def relay(postgres_url: str) -> Iterator[Relay]:
    with Relay(postgres_url) as relay:
        yield relay


@pytest.fixture
async def starting(
    tmp_path: Path, relay: Relay, postgres_schema: str
) -> AsyncIterator["StartingServer"]:
    """A server that is about to start, behind the relay. It waits for its database."""
    settings = PostgresDatabase(relay.url, postgres_schema).settings
    server = StartingServer(tmp_path, **settings, STARTUP_WAIT_SECONDS="600")
    yield server
    if server.is_running:
        await server.kill()


class StartingServer(ServerProcess):
    starting: asyncio.Task[None]

    async def begin(self) -> None:
        """Start, and return once probes are answered."""
        self.starting = asyncio.create_task(self.start())
        await asyncio.wait({self.starting}, timeout=0)
        self.url = str((await self.wait_for_log("service.waiting"))["url"])

    async def stop_while_starting(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        with pytest.raises(ServerDied):
            await self.starting
        assert not any("Traceback" in line for line in self.output)


async def test_a_start_waits_for_the_database_and_answers_probes(
    starting: StartingServer, relay: Relay, postgres_url: str
) -> None:
    relay.cut()
    await starting.begin()
    waiting = await starting.wait_for_log("store.waiting")
    assert "is it running" in str(waiting["reason"])
    assert str(postgres_url) not in str(waiting)
    await check_probes_while_starting(starting)
    relay.heal()
    await starting.starting
    async with starting.client() as api:
        assert (await api.get("/readyz")).status_code == 200
        assert (await api.get("/timers")).status_code == 200


async def test_a_start_that_waits_can_be_stopped(starting: StartingServer, relay: Relay) -> None:
    relay.cut()
    await starting.begin()
    await starting.stop_while_starting()


async def test_probes_are_answered_while_the_database_hangs(
    starting: StartingServer, relay: Relay
) -> None:
    relay.freeze()
    await starting.begin()
    await check_probes_while_starting(starting)
    await starting.stop_while_starting()


async def check_probes_while_starting(server: ServerProcess) -> None:
    async with server.client() as api:
        assert (await api.get("/livez")).status_code == 200
        ready = await api.get("/readyz")
        assert (ready.status_code, ready.json()["message"]) == (503, "starting")
        refused = await api.post("/timers", json=timer_body("http://127.0.0.1:9/", in_ms(60_000)))
        assert (refused.status_code, refused.json()["code"]) == (503, 1)
        assert int(refused.headers["retry-after"]) > 0
        refused = await api.get("/api/v1/timers")
        assert (refused.status_code, refused.json()["error"]) == (503, "SERVICE_UNAVAILABLE")


async def test_a_start_gives_up_after_its_time(tmp_path: Path, postgres_url: str) -> None:
    environ = {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0", "LOG_FORMAT": "json"}
    with Relay(postgres_url) as relay:
        relay.cut()
        environ |= {"DATABASE_URL": relay.url, "STARTUP_WAIT_SECONDS": "2"}
        finished: Finished = await run_command("serve", directory=tmp_path, **environ)
    assert finished.status == 1
    *logs, line = finished.errors.splitlines()
    assert [json.loads(each)["event"] for each in logs] == ["store.waiting", "service.waiting"]
    assert "is it running" in line


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


async def refusal(directory: Path, url: str, **settings: str) -> str:
    """The line in which the server refuses this database."""
    environ = {
        "API_KEY": API_KEY,
        "HOST": "127.0.0.1",
        "PORT": "0",
        "DATABASE_URL": url,
        **settings,
    }
    async with asyncio.timeout(START_SECONDS):
        finished: Finished = await run_command("serve", directory=directory, **environ)
    assert finished.status == 1
    (line,) = finished.errors.splitlines()
    assert PASSWORD not in line
    assert str(urlsplit(url).password) not in line
    return line
