"""Sessions of the Web UI over HTTP, with several workers on one database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.polling import poll
from tests.real_server.command import run_command
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = pytest.mark.e2e

CONNECTIONS = 12
"""Connections after which each of two workers has answered one, but for one time in 2,000."""


@asynccontextmanager
async def workers(directory: Path, url: str, schema: str) -> AsyncIterator[ServerProcess]:
    settings = {"DATABASE_URL": url, "PG_SCHEMA": schema, "WORKERS": "2"}
    async with ServerProcess(directory, **settings) as server:
        yield server


async def signed_in(url: str, path: str) -> str:
    """The token of the session that the link opens."""
    async with httpx.AsyncClient(base_url=url, trust_env=False) as browser:
        answer = await browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui"), answer.text
        return browser.cookies[cookie_of(url)]


def cookie_of(url: str) -> str:
    return f"duetime_session_{url.rpartition(':')[2]}"


async def statuses(url: str, token: str) -> list[int]:
    """The statuses of the first page, each on a connection of its own."""
    found = []
    for _ in range(CONNECTIONS):
        async with httpx.AsyncClient(base_url=url, trust_env=False) as browser:
            answer = await browser.get("/ui", headers={"Cookie": f"{cookie_of(url)}={token}"})
            found.append(answer.status_code)
    return found


async def test_every_worker_knows_the_session_and_its_end(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    async with workers(tmp_path, postgres_url, postgres_schema) as server, server.client() as api:
        body = {"name": "desk", "roles": ["read"], "namespaces": ["*"]}
        made = (await api.post("/api/v1/keys", json=body)).json()
        key = {"X-API-Key": made["key"]}
        for _ in range(3):
            path = (await api.post("/api/v1/ui-links", headers=key)).json()["path"]
            token = await signed_in(server.url, path)
            assert await statuses(server.url, token) == [200] * CONNECTIONS
            async with httpx.AsyncClient(base_url=server.url, trust_env=False) as other:
                again = await other.get(path)
            assert (again.status_code, cookie_of(server.url) in other.cookies) == (401, False)
        assert (await api.delete(f"/api/v1/keys/{made['id']}")).status_code == 204

        async def after_the_end() -> list[int]:
            return await statuses(server.url, token)

        await poll(after_the_end, lambda found: set(found) == {303})
        log = (await api.get("/api/v1/audit-log?action=session.create")).json()["entries"]
        assert [(each["actor"], each["result"]) for each in log] == [("desk", "ok")] * 3


async def test_a_command_with_the_key_opens_the_ui(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        given = ("--server", server.url, "--api-key", API_KEY)
        finished = await run_command("open", "--print", *given, directory=tmp_path)
        assert finished.status == 0, finished.errors
        link = finished.output.strip()
        assert link.startswith(f"{server.url}/ui/sign-in?code=")
        token = await signed_in(server.url, link.removeprefix(server.url))
        await server.kill()
        await server.start()
        assert await statuses(server.url, token) == [200] * CONNECTIONS, "it outlives a kill"
