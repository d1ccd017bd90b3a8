"""The session that holds an old snapshot is named."""

import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from duetime.ports.inspection import HeldSnapshot
from duetime.stores.postgres import PostgresOptions, SnapshotWatch
from duetime.stores.postgres.connections import ANY_PLAN, connected
from duetime.stores.postgres.inspection.snapshots import LOG_AGAIN_SECONDS, oldest_snapshot
from duetime.testing import VirtualClock
from tests.integration.postgres.held import held
from tests.polling import poll
from tests.postgres.fixtures import MakePostgres
from tests.postgres.options import store_options


@pytest.fixture
async def options(postgres_url: str) -> AsyncIterator[PostgresOptions]:
    """A database of its own, because sessions of other tests hold snapshots, too."""
    name = f"snapshots_{secrets.token_hex(6)}"
    server = store_options(postgres_url, "public")
    async with connected(server, ANY_PLAN) as connection:
        await connection.execute(f"CREATE DATABASE {name}")
    yield store_options(urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}")), "public")
    async with connected(server, ANY_PLAN) as connection:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_the_oldest_snapshot_is_logged_once_a_minute(options: PostgresOptions) -> None:
    clock = VirtualClock()
    watch = SnapshotWatch(options, clock, old_seconds=0.0)
    await_nothing = SnapshotWatch(options, clock)
    with capture_logs() as logs:
        await watch.look()
        assert logs == []
        async with (
            held(options, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ") as idle,
            held(options, "SELECT 1") as other,
        ):
            for each in (idle, other):
                await each.run("SET LOCAL idle_in_transaction_session_timeout = 0")
            await idle.run("SELECT count(*) FROM pg_class")
            await await_nothing.look()
            assert logs == []
            await watch.look()
            await watch.look()
            (entry,) = logs
            clock.advance(LOG_AGAIN_SECONDS)
            await watch.look()
            assert len(logs) == 2
    assert entry["event"] == "store.snapshot_held"
    assert (entry["pid"], entry["state"]) == (idle.pid, "idle in transaction")
    assert entry["application"] == "duetime (public)"
    assert entry["user"]


async def test_the_age_of_the_oldest_transaction_is_known(options: PostgresOptions) -> None:
    watch = SnapshotWatch(options, VirtualClock())

    async def age_seconds() -> float:
        await watch.look()
        assert watch.oldest_age_seconds is not None
        return watch.oldest_age_seconds

    assert await age_seconds() == 0
    async with held(options, "SELECT pg_current_xact_id()"):
        assert 0 < await age_seconds() < await age_seconds()


async def test_a_transaction_that_has_written_is_found(options: PostgresOptions) -> None:
    async with connected(options, ANY_PLAN) as connection:
        assert await oldest_snapshot(connection, 0.0) is None
        async with held(options, "SELECT pg_current_xact_id()") as writer:
            found = await oldest_snapshot(connection, 0.0)
            assert found is not None
            assert replace(found, age_seconds=0.0).pid == writer.pid


@pytest.mark.parametrize("slot", [None, "standby_1"])
async def test_a_standby_whose_sessions_need_old_rows_is_found(
    make_postgres: MakePostgres, slot: str | None
) -> None:
    with make_postgres() as primary, make_postgres(primary=primary, slot=slot) as standby:
        options = store_options(primary.url, "public")
        async with (
            connected(options, ANY_PLAN) as connection,
            held(
                store_options(standby.url), "SET idle_in_transaction_session_timeout = 0"
            ) as report,
        ):
            await report.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            await report.run("SELECT count(*) FROM pg_class")

            async def found_after_a_write() -> HeldSnapshot | None:
                await connection.execute("SELECT pg_current_xact_id()")
                return await oldest_snapshot(connection, at_least_transactions=20)

            found = await poll(found_after_a_write, lambda each: each is not None)
            assert found is not None
            assert await oldest_snapshot(connection) is None
            watch = SnapshotWatch(options, VirtualClock(), old_transactions=20)
            with capture_logs() as logs:
                await watch.look()
    assert found.age_seconds is None
    assert found.age_transactions >= 20
    assert found.pid is not None
    expected = ("walreceiver", "standby: streaming") if slot is None else (slot, "replication slot")
    assert (found.application, found.state) == expected
    (entry,) = logs
    assert (entry["event"], entry["application"]) == ("store.snapshot_held", expected[0])
    assert "hot_standby_feedback" in entry["advice"]
