"""Alerts about the store: caused on real servers by other users of their database."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.foreign_reader import foreign_reader
from tests.monitoring.prometheus import Prometheus
from tests.postgres.relay import Relay
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

HOUR_MS = 3_600_000
NOWHERE = "http://127.0.0.1:9/"
LARGE = "x" * 250_000
READERS = 8
REFUSING_TRIGGER = (
    "CREATE TRIGGER refusing BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'refused'); END"
)


async def test_a_program_that_keeps_the_log_from_being_copied(
    tmp_path: Path, prometheus: Prometheus
) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await prometheus.watch(server)
        with foreign_reader(tmp_path / "timers.db"):
            for batch in range(50):
                bodies = [
                    v1_body(f"{batch}-{number}", NOWHERE, in_ms(HOUR_MS), payload=LARGE)
                    for number in range(12)
                ]
                answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
                assert answer.status_code == 200, answer.text
            await prometheus.fires("DuetimeSqliteLogLarge", "DuetimeSqliteCheckpointOld")


async def test_an_audit_log_that_takes_no_entries(tmp_path: Path, prometheus: Prometheus) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await prometheus.watch(server)
        with contextlib.closing(sqlite3.connect(tmp_path / "timers.db", timeout=30)) as foreign:
            foreign.execute(REFUSING_TRIGGER)
            foreign.commit()
        timer_id = await create_timer(api, NOWHERE, in_ms(HOUR_MS))
        await api.delete(f"/timers/{timer_id}")
        await prometheus.fires("DuetimeAuditEntriesDropped")


@asynccontextmanager
async def locked_tables(url: str, schema: str) -> AsyncIterator[None]:
    """Another session holds all tables of timers, as a migration by hand may do."""
    session = await asyncpg.connect(url)
    try:
        rows = await session.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename = ANY($2)",
            schema,
            TABLES_OF_TIMERS,
        )
        assert len(rows) == len(TABLES_OF_TIMERS), rows
        names = ", ".join(f"{schema}.{row['tablename']}" for row in rows)
        async with session.transaction():
            await session.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await session.close()


TABLES_OF_TIMERS = ["ledger", "pending_timers", "executing_timers"]


async def knock(api: httpx.AsyncClient) -> None:
    """Create and read timers until the task is cancelled, and take any answer."""

    async def read() -> None:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                await api.get(f"{TIMERS}/default/t")

    async with asyncio.TaskGroup() as readers:
        for _ in range(READERS):
            readers.create_task(read())
        while True:
            with contextlib.suppress(httpx.HTTPError):
                await api.post(TIMERS, json=v1_body("t", NOWHERE, in_ms(HOUR_MS)))


async def test_a_database_whose_tables_are_locked(
    tmp_path: Path,
    prometheus: Prometheus,
    receiver: CallbackReceiver,
    postgres_url: str,
    postgres_schema: str,
) -> None:
    receiver.reaction = Answer(delay_seconds=1.0)
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema}
    settings["PG_STATEMENT_TIMEOUT_SECONDS"] = "2"
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        await prometheus.watch(server)
        for _ in range(10):
            await create_timer(api, receiver.url, in_ms(200))
        await receiver.wait_for(1)
        async with locked_tables(postgres_url, postgres_schema):
            load = asyncio.create_task(knock(api))
            await prometheus.fires(
                "DuetimeStoreErrors",
                "DuetimeStoreSlow",
                "DuetimeOutcomesUnwritten",
                "DuetimeHttpErrors",
                "DuetimeCensusStale",
                "DuetimeNoPolls",
            )
            load.cancel()
            await asyncio.wait({load})
        await prometheus.fell_silent("DuetimeOutcomesUnwritten", "DuetimeNoPolls")


async def test_a_database_that_is_away(
    tmp_path: Path, prometheus: Prometheus, postgres_url: str, postgres_schema: str
) -> None:
    with Relay(postgres_url) as relay:
        settings = {"DATABASE_URL": relay.url, "PG_SCHEMA": postgres_schema}
        async with ServerProcess(tmp_path, **settings) as server:
            await prometheus.watch(server)
            relay.cut()
            await prometheus.fires("DuetimeEngineNotRunning", "DuetimeStoreErrors")
            relay.heal()
            await prometheus.fell_silent("DuetimeEngineNotRunning")


async def test_a_transaction_that_stays_open(
    tmp_path: Path, prometheus: Prometheus, postgres_url: str, postgres_schema: str
) -> None:
    settings = {"DATABASE_URL": postgres_url, "PG_SCHEMA": postgres_schema}
    # The server looks at its start, and then every 30 s.
    forgetful = await asyncpg.connect(postgres_url)
    await forgetful.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()")
    async with ServerProcess(tmp_path, **settings) as server:
        await prometheus.watch(server)
        await prometheus.fires("DuetimePostgresOldTransaction")
    await forgetful.close()
