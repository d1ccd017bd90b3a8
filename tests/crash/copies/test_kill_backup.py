"""`duetime backup` and `duetime restore` are killed at random points of their work."""

import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.domain.namespace import Namespace
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.backup.snapshot import check_store
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.testing.timers import make_timer
from tests.crash.copies.killed_commands import KilledCommands
from tests.effort import scaled
from tests.real_server.timer_requests import in_ms, now
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

KILLS = scaled(20)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "timers.db"


@pytest.fixture
async def killed(database: Path) -> AsyncIterator[KilledCommands]:
    async with KilledCommands(TIMER_DB_PATH=str(database)) as killed:
        yield killed


@pytest.fixture
async def store(database: Path) -> SqliteStore:
    """A store with 300 timers, open."""
    store = SqliteStore(database)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    await create(store, 300)
    return store


async def create(store: SqliteStore, count: int) -> None:
    timers = [make_timer(f"timer-{number}", execute_at=in_ms(3_600_000)) for number in range(count)]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])


async def stored(database: Path) -> int:
    """The number of timers, once a start has made the best of what a crash left. The audit finds
    nothing wrong."""
    store = SqliteStore(database)
    await store.open()
    count = sum((await store.counts()).values())
    await store.close()
    inspector = SqliteInspector(database)
    await inspector.open()
    report = await inspector.audit(now())
    await inspector.close()
    assert report.findings == []
    return count


async def test_a_killed_backup_leaves_a_whole_file_or_the_old_one(
    tmp_path: Path, store: SqliteStore, killed: KilledCommands
) -> None:
    chance = random.Random(chosen_seed())
    file = tmp_path / "copy.db"
    command = ("backup", str(file), "--force")
    assert (await killed(0, *command))[0] == 0
    status, points = await killed(0, *command)
    assert (status, points > 50) == (0, True)
    await create(store, 400)
    seen = Counter[int]()
    for _ in range(KILLS):
        point = chance.randint(1, points)
        status, _ = await killed(point, *command)
        assert status in (-signal.SIGKILL, 0), f"point {point} of {points}"
        seen[check_store(file, now()).rows["timers"]] += 1
    sys.stdout.write(f"{points} points, timers in the file {seen}\n")
    assert set(seen) <= {300, 400}
    assert (await killed(0, *command))[0] == 0
    assert check_store(file, now()).rows["timers"] == 400
    await store.close()
    assert sorted(os.listdir(tmp_path)) == ["copy.db", "timers.db", "timers.db.lock"]


async def test_a_killed_restore_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, store: SqliteStore, database: Path, killed: KilledCommands
) -> None:
    chance = random.Random(chosen_seed())
    file = tmp_path / "copy.db"
    assert (await killed(0, "backup", str(file)))[0] == 0
    await create(store, 400)
    # As after a crash of the server: all timers are in the log.
    crashed = {
        path: path.read_bytes() for path in tmp_path.glob("timers.db*") if path.suffix != ".db-shm"
    }
    await store.close()
    command = ("restore", str(file), "--force")
    status, points = await killed(0, *command)
    assert (status, points > 50, await stored(database)) == (0, True, 300)
    seen = Counter[int]()
    for _ in range(KILLS):
        for path in tmp_path.glob("timers.db*"):
            path.unlink()
        for path, content in crashed.items():
            path.write_bytes(content)
        point = chance.randint(1, points)
        status, _ = await killed(point, *command)
        assert status in (-signal.SIGKILL, 0), f"point {point} of {points}"
        seen[await stored(database)] += 1
    sys.stdout.write(f"{points} points, timers in the store {seen}\n")
    assert set(seen) <= {300, 400}
    assert (await killed(0, *command))[0] == 0
    assert await stored(database) == 300
    assert not (tmp_path / "timers.db.partial").exists()
