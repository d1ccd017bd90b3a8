"""Files that are refused because they are not whole stores, and new files that are not."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.domain.namespace import Namespace
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite import schema as schema_module
from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk import opening
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.stores.sqlite.schema import migrations, schema_version
from duetime.testing.timers import make_timer

UNFINISHED = "unfinished copy.*restore a backup with `duetime restore`"
NEWEST = migrations()[-1][0]


async def fill(path: Path, timers: int = 3) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    requests = [make_timer(f"timer-{number}") for number in range(timers)]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in requests])
    await store.close()


async def count(path: Path) -> int:
    store = SqliteStore(path)
    await store.open()
    try:
        return sum((await store.counts()).values())
    finally:
        await store.close()


def execute(path: Path, script: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(script)


async def assert_refused(path: Path, message: str) -> None:
    """Every opener refuses the file, more than once, and leaves it as it was."""
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(SchemaRefused, match=message):
            schema_version(path)
        with pytest.raises(SchemaRefused, match=message):
            await SqliteStore(path).open()
        with pytest.raises(SchemaRefused, match=message):
            await SqliteInspector(path).open()
    assert path.read_bytes() == before


async def test_a_file_with_pages_and_no_schema_is_refused(path: Path) -> None:
    execute(path, "CREATE TABLE pages (a); DROP TABLE pages")
    await assert_refused(path, f"timers.db is not empty, but has no schema.*{UNFINISHED}")


async def test_the_file_of_a_running_service_without_its_log_is_refused(
    path: Path, tmp_path: Path
) -> None:
    """On a small installation everything is in the log."""
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    await store.close()
    await assert_refused(copy, "has no schema of Duetime.*a copy without its -wal file")


@pytest.mark.parametrize(("exists", "state"), [(False, "missing"), (True, "empty")])
async def test_a_log_without_its_file_is_refused_and_kept(
    path: Path, tmp_path: Path, exists: bool, state: str
) -> None:
    """On a small installation everything is in the log, and SQLite deletes one beside an empty
    file."""
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    copy = tmp_path / "copy.db"
    log = tmp_path / "copy.db-wal"
    shutil.copy(tmp_path / "timers.db-wal", log)
    await store.close()
    if exists:
        copy.touch()
    content = log.read_bytes()
    message = f"copy.db is {state}, but copy.db-wal beside it .*put back the file"
    for _ in range(2):
        with pytest.raises(SchemaRefused, match=message):
            await SqliteStore(copy).open()
        with pytest.raises(SchemaRefused, match=message):
            schema_version(copy)
        if exists:
            with pytest.raises(SchemaRefused, match=message):
                await SqliteInspector(copy).open()
    assert log.read_bytes() == content
    assert copy.exists() == exists


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ("DROP TABLE finished_timers", "it lacks column finished_timers.attempt, .* more"),
        ("DROP INDEX live_timers_due", "it lacks index live_timers_due"),
        ("DROP VIEW new_timers", "it lacks trigger new_timers_insert, view new_timers"),
        (
            "ALTER TABLE live_timers DROP COLUMN last_error",
            "it lacks column live_timers.last_error",
        ),
        ("PRAGMA user_version = 0", "version 0"),
    ],
)
async def test_a_file_without_all_of_its_schema_is_refused(
    path: Path, change: str, difference: str
) -> None:
    await fill(path)
    execute(path, change)
    await assert_refused(path, f"timers.db is not a whole store: .*{difference}.*{UNFINISHED}")


async def test_a_file_with_parts_of_a_later_migration_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(path)
    later = "ALTER TABLE timers ADD COLUMN color TEXT"
    execute(path, later)
    known = [*migrations(), (NEWEST + 1, later)]
    monkeypatch.setattr(schema_module, "migrations", lambda: known)
    with pytest.raises(SchemaRefused, match=r"but it already has column timers.color"):
        await SqliteStore(path).open()


async def test_objects_of_other_tools_are_left_alone(path: Path) -> None:
    await fill(path)
    execute(path, "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY); ANALYZE")
    assert await count(path) == 3


async def test_a_copy_that_was_killed_half_way_is_refused(path: Path, tmp_path: Path) -> None:
    """SQLite would roll such a file back to nothing, and call that whole."""
    await fill(path, 2_000)
    copying = tmp_path / "copying.db"
    with (
        closing(apsw.Connection(str(path))) as source,
        closing(apsw.Connection(str(copying))) as target,
    ):
        target.pragma("cache_size", 10)
        with target.backup("main", source, "main") as backup:
            backup.step(150)
            copy = tmp_path / "copy.db"
            for suffix in ("", "-journal"):
                shutil.copy(f"{copying}{suffix}", f"{copy}{suffix}")
    await assert_refused(copy, f"copy.db is an {UNFINISHED}")
    with closing(apsw.Connection(str(copy))) as rolled_back:
        assert rolled_back.pragma("integrity_check") == "ok"
    assert copy.stat().st_size == 0


async def test_a_write_that_was_killed_before_the_file_had_a_log_is_undone(
    path: Path, tmp_path: Path
) -> None:
    await fill(path, 2_000)
    torn = tmp_path / "torn.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "delete")
        connection.pragma("cache_size", 10)
        connection.execute("BEGIN; UPDATE timers SET delivery_id = delivery_id || 'x'")
        for suffix in ("", "-journal"):
            shutil.copy(f"{path}{suffix}", f"{torn}{suffix}")
    with pytest.raises(StoreUnavailable, match=r"in the middle of a write: start the service"):
        await SqliteInspector(torn).open()
    assert await count(torn) == 2_000
    with closing(apsw.Connection(str(torn))) as mended:
        changed = "SELECT count(*) FROM timers WHERE delivery_id LIKE '%x'"
        assert mended.execute(changed).fetchall() == [(0,)]


async def test_a_first_start_that_was_killed_is_repeated(path: Path) -> None:
    connect(path, 100).close()
    assert path.stat().st_size > 0
    path.with_name("timers.db.lock").write_text("4711\n")
    assert await count(path) == 0
    assert schema_version(path) == NEWEST


async def test_a_closed_store_is_a_single_file(path: Path) -> None:
    assert await count(path) == 0
    assert sorted(os.listdir(path.parent)) == ["timers.db", "timers.db.lock"]


async def test_a_first_start_that_failed_is_repeated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: apsw.Connection) -> None:
        """The disk has no room for the copy of the log either, which therefore stays."""
        schema_module.migrate(connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raise apsw.FullError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrate", fail)
        with pytest.raises(StoreUnavailable, match=r"full"):
            await SqliteStore(path).open()
    assert await count(path) == 0


@pytest.mark.parametrize("exists", [False, True])
async def test_an_empty_file_is_a_new_store_and_is_mentioned(path: Path, exists: bool) -> None:
    if exists:
        path.touch()
    with capture_logs() as logs:
        assert await count(path) == 0
    assert [entry["event"] for entry in logs] == ["store.empty_file"] * exists
    assert await count(path) == 0


async def test_a_file_has_one_lock_under_all_its_names(store: SqliteStore, path: Path) -> None:
    link = path.with_name("link") / "other.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with pytest.raises(StoreUnavailable, match="in use by another duetime process"):
        await SqliteStore(link).open()
