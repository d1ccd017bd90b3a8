"""Closing the file: the log is copied and gone, or a warning says that it is still needed."""

from pathlib import Path

import apsw
from structlog.testing import capture_logs

from duetime.domain.keys import TimerKey
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite import SqliteStore
from duetime.testing.timers import make_timer
from tests.foreign_reader import foreign_reader
from tests.integration.sqlite.conftest import SmallDisk


async def create(store: SqliteStore, timer_id: str) -> None:
    await store.create([CreateRequest(make_timer(timer_id), OnExisting.KEEP)])


async def assert_kept(path: Path, *timer_ids: str) -> None:
    store = SqliteStore(path)
    await store.open()
    for timer_id in timer_ids:
        assert await store.get(TimerKey("default", timer_id)) is not None
    with capture_logs() as logs:
        await store.close()
    assert not logs
    assert not path.with_name("timers.db-wal").exists()


async def test_a_log_that_a_reader_holds_is_mentioned(store: SqliteStore, path: Path) -> None:
    with foreign_reader(path) as reader:
        await create(store, "held")
        with capture_logs() as logs:
            await store.close()
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("sqlite.log_left", "warning")
    assert line["file"] == str(path)
    assert f"(pid {reader})" in str(line["readers"])
    await assert_kept(path, "held")


async def test_another_program_without_a_transaction_holds_nothing(
    store: SqliteStore, path: Path, database: apsw.Connection
) -> None:
    database.execute("SELECT 1 FROM namespaces").fetchall()
    await create(store, "copied")
    with capture_logs() as logs:
        await store.close()
    assert not logs
    assert path.with_name("timers.db-wal").stat().st_size == 0


async def test_a_log_for_which_the_file_has_no_room_stays_as_it_is(
    store: SqliteStore, path: Path, small_disk: SmallDisk
) -> None:
    """A copy that is broken off frees nothing, and uses up the disk."""
    await create(store, "in the log")
    size_bytes = path.stat().st_size
    small_disk.set_free_bytes(0)
    with capture_logs() as logs:
        await store.close()
    assert [line["event"] for line in logs] == ["sqlite.checkpoint_failed", "sqlite.log_left"]
    assert path.stat().st_size == size_bytes
    small_disk.set_free_bytes(2**30)
    await assert_kept(path, "in the log")
