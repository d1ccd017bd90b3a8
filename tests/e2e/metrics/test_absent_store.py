"""The metrics are there while the store is not: during an outage, and before the start is over."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.metrics.scraping import scrape, scrape_by, value
from tests.polling import poll
from tests.postgres.relay import Relay
from tests.real_server.databases import PostgresDatabase
from tests.real_server.server_process import ServerProcess

pytestmark = pytest.mark.e2e

LONGEST_SECONDS = 5.0
"""Prometheus gives up after 10 s unless told otherwise."""


async def test_scrapes_go_on_while_the_database_hangs(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    with Relay(postgres_url) as relay:
        database = PostgresDatabase(relay.url, postgres_schema)
        settings = {"PG_STATEMENT_TIMEOUT_SECONDS": "1"}
        async with ServerProcess(tmp_path, **database.settings, **settings) as server:
            async with server.client() as api:
                made = await api.post(
                    "/api/v1/keys",
                    json={"name": "prometheus", "roles": ["read"], "namespaces": ["*"]},
                )
                api.headers["X-API-Key"] = made.json()["key"]
                await scrape_by(api)
                relay.freeze()

                async def status() -> int:
                    return (await api.get("/timers")).status_code

                # The key cannot be checked any more.
                await poll(status, lambda status: status == 503)
                async with asyncio.timeout(LONGEST_SECONDS):
                    families = await scrape_by(api)
                assert value(families, "duetime_build_info", store="postgres") == 1
            relay.heal()


async def test_the_own_port_answers_while_the_start_waits_for_the_database(
    tmp_path: Path, free_port: int
) -> None:
    server = ServerProcess(
        tmp_path,
        DATABASE_URL="postgresql://nobody@127.0.0.1:9/none",
        METRICS_PORT=str(free_port),
    )
    starting = asyncio.create_task(server.start())
    try:
        await server_waits(server)
        families = await scrape(f"http://127.0.0.1:{free_port}")
        assert value(families, "duetime_build_info", store="postgres") == 1
        assert value(families, "duetime_engine_running") == 0
    finally:
        starting.cancel()
        await asyncio.wait({starting})
        await server.kill()


async def server_waits(server: ServerProcess) -> None:
    """Wait until the server waits for its database."""

    async def events() -> set[object]:
        return {entry["event"] for entry in server.logs}

    await poll(events, lambda events: "store.waiting" in events)
