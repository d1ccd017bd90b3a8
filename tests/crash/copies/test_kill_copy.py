"""`duetime copy` is killed at random points, again and again, and still copies everything once."""

import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.domain.errors import SchemaRefused
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.inspection.inspector import PostgresInspector
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.testing.timers import make_timer
from tests.crash.copies.killed_commands import KilledCommands
from tests.effort import scaled
from tests.postgres.fixtures import dropped_schema
from tests.postgres.options import store_options
from tests.real_server.timer_requests import in_ms, now
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TIMERS = 300
CANCELED = 100
COPIES = scaled(4)
KILLS_PER_COPY = 4
BATCH = ("--batch", "40", "--quiet")


@pytest.fixture
async def source(tmp_path: Path) -> Path:
    """A file with pending and canceled timers."""
    path = tmp_path / "timers.db"
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    timers = [make_timer(f"timer-{n}", execute_at=in_ms(3_600_000)) for n in range(TIMERS)]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])
    for timer in timers[:CANCELED]:
        await store.cancel_if_pending(timer.key, now())
    await store.close()
    return path


@pytest.fixture
async def killed() -> AsyncIterator[KilledCommands]:
    async with KilledCommands() as killed:
        yield killed


async def test_a_killed_copy_into_postgresql_goes_on(
    source: Path, postgres_url: str, killed: KilledCommands
) -> None:
    chance = random.Random(chosen_seed())
    points, kills, refusals = 0, 0, 0
    for _ in range(COPIES + 1):
        with dropped_schema(postgres_url) as schema:
            to = ("--to", postgres_url, "--to-schema", schema)
            command = ("copy", "--from", str(source), *to, *BATCH)
            for number in range(KILLS_PER_COPY if points else 0):
                # The first is killed while timers are copied, the others anywhere.
                span = (points // 2, points * 4 // 5) if number == 0 else (1, points)
                status, _ = await killed(chance.randint(*span), *command)
                assert status in (-signal.SIGKILL, 0)
                kills += status != 0
                refusals += status != 0 and await is_refused(postgres_url, schema)
            status, passed = await killed(0, *command)
            assert status == 0
            points = points or passed
            assert await postgres_counts(postgres_url, schema) == (TIMERS - CANCELED, CANCELED)
    sys.stdout.write(f"{points} points, {kills} kills, {refusals} starts refused\n")
    assert min(kills, refusals) >= COPIES


async def is_refused(url: str, schema: str) -> bool:
    """Whether a service refuses to start on what a killed copy left. Otherwise there must be
    nothing at all, or everything."""
    store = PostgresStore(store_options(url, schema))
    try:
        await store.open()
    except SchemaRefused:
        return True
    counts = await store.counts()
    await store.close()
    assert sum(counts.values()) in (0, TIMERS)
    return False


async def postgres_counts(url: str, schema: str) -> tuple[int, int]:
    """The pending and canceled timers. The audit finds nothing wrong."""
    inspector = PostgresInspector(store_options(url, schema))
    await inspector.open()
    report = await inspector.audit(now())
    await inspector.close()
    assert (report.findings, report.accepted) == ([], TIMERS)
    return report.counts[TimerStatus.PENDING], report.counts[TimerStatus.CANCELED]


async def test_a_killed_copy_into_a_file_goes_on(
    source: Path,
    tmp_path: Path,
    postgres_url: str,
    postgres_schema: str,
    killed: KilledCommands,
) -> None:
    chance = random.Random(chosen_seed())
    there = (postgres_url, "--to-schema", postgres_schema)
    assert (await killed(0, "copy", "--from", str(source), "--to", *there, *BATCH))[0] == 0
    back = ("copy", "--from", postgres_url, "--from-schema", postgres_schema, *BATCH, "--to")
    status, points = await killed(0, *back, str(tmp_path / "0.db"))
    assert status == 0
    for number in range(1, COPIES + 1):
        file = tmp_path / f"{number}.db"
        for _ in range(KILLS_PER_COPY):
            status, _ = await killed(chance.randint(1, points), *back, str(file))
            assert status in (-signal.SIGKILL, 0)
        assert (await killed(0, *back, str(file)))[0] == 0
        inspector = SqliteInspector(file)
        await inspector.open()
        report = await inspector.audit(now())
        await inspector.close()
        assert report.findings == []
        assert report.counts[TimerStatus.PENDING] == TIMERS - CANCELED
        assert report.counts[TimerStatus.CANCELED] == CANCELED
