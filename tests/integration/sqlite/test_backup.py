"""Backups and restores of a SQLite file, and everything that they refuse."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from duetime.domain.errors import CopyRefused, DuetimeError, SchemaRefused, StoreUnavailable
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import StoreContent
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.backup import snapshot
from duetime.stores.sqlite.backup.placing import back_up, restore
from duetime.stores.sqlite.backup.snapshot import check_store
from duetime.testing.store_contract.steps import at
from duetime.testing.timers import make_timer

NOW = at(60)


def silent(_: int) -> None:
    pass


def save(database: Path, file: Path, *, force: bool = False) -> StoreContent:
    return back_up(database, file, force=force, now=NOW, advance=silent)


def load(file: Path, database: Path, *, force: bool = False) -> StoreContent:
    return restore(file, database, force=force, now=NOW, advance=silent)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    directory = tmp_path / "backups"
    directory.mkdir()
    return directory / "copy.db"


async def create(store: SqliteStore, *ids: str) -> None:
    timers = [make_timer(id, execute_at=at(90 if id.startswith("later") else 30)) for id in ids]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])


def ids_in(path: Path) -> set[str]:
    with closing(apsw.Connection(str(path))) as connection:
        return {id for (id,) in connection.execute("SELECT id FROM timers")}


async def test_a_backup_has_the_timers_of_a_store_in_use(
    store: SqliteStore, path: Path, file: Path
) -> None:
    await create(store, "due", "later")
    content = save(path, file)
    assert content.counts == {**dict.fromkeys(TimerStatus, 0), TimerStatus.PENDING: 2}
    assert (content.rows["timers"], content.overdue) == (2, 1)
    assert content.last_change_at == make_timer().created_at
    await create(store, "after")
    assert os.listdir(file.parent) == ["copy.db"], "a single file, which needs no log"
    assert file.stat().st_mode & 0o777 == 0o600
    assert ids_in(file) == {"due", "later"}
    assert check_store(file, NOW) == content


async def test_a_backup_sees_one_state_however_much_is_written_meanwhile(
    store: SqliteStore, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's backup starts over after each write of another connection."""
    await create(store, *(f"t{number}" for number in range(1_000)))
    monkeypatch.setattr(snapshot, "PAGES_PER_STEP", 4)
    with closing(apsw.Connection(str(path))) as other:
        steps = 0

        def write(_: int) -> None:
            nonlocal steps
            steps += 1
            other.execute("UPDATE live_timers SET last_error = ?", ("x" * steps,))

        content = back_up(path, file, force=False, now=NOW, advance=write)
    assert steps == -(-content.size_bytes // (4 * 4_096))
    with closing(apsw.Connection(str(file))) as copy:
        errors = copy.execute("SELECT DISTINCT last_error FROM live_timers").fetchall()
    assert errors == [(None,)]


async def test_a_restored_store_has_the_timers_of_the_backup(
    store: SqliteStore, path: Path, file: Path, tmp_path: Path
) -> None:
    await create(store, "due")
    saved = save(path, file)
    elsewhere = tmp_path / "elsewhere.db"
    assert load(file, elsewhere) == saved
    other = SqliteStore(elsewhere)
    await other.open()
    timer = await other.get(make_timer("due").key)
    await other.close()
    assert timer == await store.get(make_timer("due").key)
    assert ids_in(file) == {"due"}


async def test_a_backup_can_be_used_as_it_is(store: SqliteStore, path: Path, file: Path) -> None:
    await create(store, "due")
    save(path, file)
    copy = SqliteStore(file)
    await copy.open()
    await create(copy, "later")
    await copy.close()
    assert ids_in(file) == {"due", "later"}


async def test_a_restore_replaces_a_store_and_its_log_only_by_force(
    store: SqliteStore, path: Path, file: Path
) -> None:
    await create(store, "before")
    save(path, file)
    await create(store, "after")
    with pytest.raises(CopyRefused, match=r"in use by another duetime process"):
        load(file, path, force=True)
    # As after a crash: a log with timers lies beside the file.
    log = path.with_name("timers.db-wal").read_bytes()
    main = path.read_bytes()
    await store.close()
    path.write_bytes(main)
    path.with_name("timers.db-wal").write_bytes(log)
    path.chmod(0o640)
    with pytest.raises(CopyRefused, match=r"timers.db holds timers already: .* --force"):
        load(file, path)
    assert ids_in(path) == {"before", "after"}
    load(file, path, force=True)
    assert ids_in(path) == {"before"}
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(path.parent)) == ["backups", "timers.db", "timers.db.lock"]


async def test_a_log_without_its_file_does_not_damage_a_restored_store(
    store: SqliteStore, path: Path, file: Path
) -> None:
    await create(store, "before")
    save(path, file)
    await create(store, "after")
    log = path.with_name("timers.db-wal").read_bytes()
    await store.close()
    path.unlink()
    path.with_name("timers.db-wal").write_bytes(log)
    load(file, path, force=True)
    assert ids_in(path) == {"before"}


async def test_a_restore_waits_for_nobody_who_reads_the_old_store(
    store: SqliteStore, path: Path, file: Path
) -> None:
    save(path, file)
    await store.close()
    with closing(apsw.Connection(str(path))) as reader:
        reader.execute("BEGIN; SELECT * FROM timers")
        with pytest.raises(CopyRefused, match=r"another program is reading .*timers.db"):
            load(file, path, force=True)
    load(file, path, force=True)


@pytest.mark.parametrize("damage", [b"", b"no database" * 1_000])
async def test_a_restore_replaces_a_file_that_cannot_be_read(
    store: SqliteStore, path: Path, file: Path, damage: bytes
) -> None:
    await create(store, "before")
    save(path, file)
    await store.close()
    path.write_bytes(damage)
    load(file, path, force=bool(damage))
    assert ids_in(path) == {"before"}


async def test_a_restore_writes_through_a_symbolic_link(
    store: SqliteStore, path: Path, file: Path, tmp_path: Path
) -> None:
    await create(store, "before")
    save(path, file)
    link, real = tmp_path / "link.db", tmp_path / "real.db"
    link.symlink_to(real)
    load(file, link)
    assert link.is_symlink()
    assert ids_in(real) == {"before"}


async def test_an_older_backup_is_replaced_only_by_force(
    store: SqliteStore, path: Path, file: Path
) -> None:
    await create(store, "first")
    save(path, file)
    await create(store, "second")
    with pytest.raises(CopyRefused, match=r"copy.db exists: .* --force"):
        save(path, file)
    assert ids_in(file) == {"first"}
    save(path, file, force=True)
    assert ids_in(file) == {"first", "second"}


async def test_leftovers_beside_a_backup_do_not_damage_it(
    store: SqliteStore, path: Path, file: Path
) -> None:
    await create(store, "first")
    stale = file.with_name("copy.db-wal")
    shutil.copy(path.with_name("timers.db-wal"), stale)
    with pytest.raises(CopyRefused, match=r"copy.db-wal exists"):
        save(path, file)
    file.with_name("copy.db.partial").write_bytes(b"left by a killed backup")
    save(path, file, force=True)
    assert os.listdir(file.parent) == ["copy.db"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
async def test_no_file_of_the_store_itself_is_overwritten(
    store: SqliteStore, path: Path, tmp_path: Path, suffix: str
) -> None:
    own = path.with_name(path.name + suffix)
    link = tmp_path / "link"
    link.symlink_to(own)
    for file in (own, link):
        with pytest.raises(CopyRefused, match=r"belongs to the store itself"):
            save(path, file, force=True)
    await create(store, "still works")


async def test_a_store_with_the_name_of_an_unfinished_copy_is_not_overwritten(
    store: SqliteStore, path: Path, file: Path, tmp_path: Path
) -> None:
    save(path, file)
    odd = file.with_name("copy.db.partial")
    file.rename(odd)
    with pytest.raises(CopyRefused, match=r"rename it"):
        save(odd, file)
    assert check_store(odd, NOW).rows["timers"] == 0


async def test_a_file_that_another_service_uses_is_not_replaced(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    other = SqliteStore(tmp_path / "other.db")
    await other.open()
    with pytest.raises(CopyRefused, match=r"other.db is in use by another duetime process"):
        save(path, tmp_path / "other.db", force=True)
    await other.close()


async def test_two_backups_to_one_file_do_not_mix(
    store: SqliteStore, path: Path, file: Path
) -> None:
    refused = []

    def save_again(_: int) -> None:
        with pytest.raises(CopyRefused, match=r"another command is writing .*copy.db.partial"):
            save(path, file)
        refused.append(True)

    back_up(path, file, force=False, now=NOW, advance=save_again)
    assert refused
    assert check_store(file, NOW).rows["timers"] == 0


def interrupt(_: int) -> None:
    raise KeyboardInterrupt


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)


def want_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "ROOM_TO_LEAVE_BYTES", 2**60)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (fill_disk, "cannot write .*No space left on device"),
        (want_room, "has .* MB of room, but the copy takes 0 MB .*: make room"),
    ],
)
async def test_a_copy_that_fails_leaves_no_file(
    store: SqliteStore,
    path: Path,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[pytest.MonkeyPatch], None],
    message: str,
) -> None:
    with monkeypatch.context() as patch:
        trouble(patch)
        with pytest.raises(CopyRefused, match=message):
            save(path, file)
    assert os.listdir(file.parent) == []
    save(path, file)


async def test_an_interrupted_copy_leaves_no_file(
    store: SqliteStore, path: Path, file: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        back_up(path, file, force=False, now=NOW, advance=interrupt)
    assert os.listdir(file.parent) == []


async def test_a_damaged_store_is_not_backed_up(store: SqliteStore, path: Path, file: Path) -> None:
    await create(store, *(f"t{number}" for number in range(500)))
    await store.close()
    with closing(apsw.Connection(str(path))) as connection:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'live_timers_due'"
        )
    with path.open("r+b") as raw:
        raw.seek((page - 1) * 4_096)
        raw.write(b"\xff" * 4_096)
    with pytest.raises(CopyRefused, match=r"timers.db is damaged: "):
        save(path, file)
    assert os.listdir(file.parent) == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("PRAGMA user_version = 99", SchemaRefused, "use a newer release"),
        ("DROP TABLE finished_timers", SchemaRefused, "not a whole store"),
        ("PRAGMA application_id = 7", SchemaRefused, "not a Duetime file"),
    ],
)
async def test_a_file_that_is_not_a_whole_store_is_neither_saved_nor_restored(
    store: SqliteStore,
    path: Path,
    file: Path,
    change: str,
    error: type[DuetimeError],
    message: str,
) -> None:
    save(path, file)
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(change)
    elsewhere = file.with_name("elsewhere.db")
    with pytest.raises(error, match=message):
        load(file, elsewhere)
    with pytest.raises(error, match=message):
        save(file, elsewhere)
    assert not elsewhere.exists()


async def test_a_file_that_is_missing_or_empty_is_neither_saved_nor_restored(
    path: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnavailable, match=r"there is no such file"):
        save(path, tmp_path / "copy.db")
    with pytest.raises(StoreUnavailable, match=r"there is no such file"):
        load(tmp_path / "copy.db", path)
    (tmp_path / "copy.db").touch()
    with pytest.raises(SchemaRefused, match=r"copy.db is empty"):
        load(tmp_path / "copy.db", path)
    assert not path.exists()


async def test_a_copy_needs_a_directory(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    with pytest.raises(CopyRefused, match=r"the directory .*missing does not exist"):
        save(path, tmp_path / "missing" / "copy.db")
    with pytest.raises(CopyRefused, match=r"it is a directory"):
        save(path, tmp_path)
