"""The checkpointer: an error delays a checkpoint, and a reader that holds the log is named."""

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk.checkpointer import (
    LOG_PAGES_BEFORE_CHECKPOINT,
    Checkpointer,
    LogStatus,
)
from duetime.stores.sqlite.disk.space import DiskSpace
from tests.foreign_reader import foreign_reader
from tests.polling import poll

PAGE_BYTES = 4_096
INSERT = f"INSERT INTO written VALUES (zeroblob({LOG_PAGES_BEFORE_CHECKPOINT * PAGE_BYTES}))"


class Disk:
    """Fails to sync the first time."""

    def __init__(self) -> None:
        self.tries = 0

    def sync(self, descriptor: int) -> None:
        self.tries += 1
        if self.tries == 1:
            raise MemoryError


def must_not_end(event: str, error: BaseException) -> None:
    pytest.fail(f"{event}: {error!r}")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fdatasync", disk.sync)
    return disk


@pytest.fixture
def writing(path: Path) -> Iterator[apsw.Connection]:
    with closing(connect(path, cache_kib=1_024)) as connection:
        connection.execute("CREATE TABLE written (content BLOB)")
        yield connection


async def test_an_unexpected_error_does_not_end_checkpoints(
    path: Path, disk: Disk, writing: apsw.Connection
) -> None:
    with (
        capture_logs() as logs,
        path.open("rb") as file,
        closing(
            Checkpointer(path, file.fileno(), writing, must_not_end, DiskSpace(path, 0))
        ) as checkpoints,
    ):
        inserts = iter([INSERT] * 10)

        async def tries_after_a_commit() -> int:
            writing.execute(next(inserts, "SELECT 1"))
            checkpoints.between_commits()
            return disk.tries

        await poll(tries_after_a_commit, lambda tries: tries > 1)
    assert [(line["event"], line["log_level"], line["error"]) for line in logs] == [
        ("sqlite.checkpoint_failed", "warning", "MemoryError()")
    ]


LOG_PAGES = 64
INSERT_FEW = f"INSERT INTO written VALUES (zeroblob({LOG_PAGES // 4 * PAGE_BYTES}))"


async def test_the_size_of_the_log_and_the_age_of_its_last_copy_are_known(
    path: Path, writing: apsw.Connection
) -> None:
    with (
        path.open("rb") as file,
        closing(
            Checkpointer(path, file.fileno(), writing, must_not_end, DiskSpace(path, 0))
        ) as checkpointer,
    ):
        before = checkpointer.status
        writing.execute(INSERT)
        grown = await poll(
            lambda: status_of(checkpointer), until=lambda status: status.size_bytes > 2**25
        )
        assert grown.copied_seconds_ago > before.copied_seconds_ago

        async def write_on() -> LogStatus:
            checkpointer.between_commits()
            return checkpointer.status

        copied = await poll(
            write_on, until=lambda status: status.copied_seconds_ago < grown.copied_seconds_ago
        )
        assert copied.size_bytes > 0


async def status_of(checkpointer: Checkpointer) -> LogStatus:
    return checkpointer.status


async def test_a_reader_that_holds_the_log_is_named_and_the_log_shrinks_when_it_ends(
    path: Path, writing: apsw.Connection
) -> None:
    space = DiskSpace(path, 0)
    with (
        capture_logs() as logs,
        path.open("rb") as file,
        closing(
            Checkpointer(path, file.fileno(), writing, must_not_end, space, log_pages=LOG_PAGES)
        ) as checkpoints,
    ):

        async def write() -> int:
            writing.execute(INSERT_FEW)
            checkpoints.between_commits()
            return space.log_bytes()

        async def warnings_after_a_commit() -> int:
            await write()
            return len(logs)

        with foreign_reader(path) as reader:
            await poll(warnings_after_a_commit, lambda warnings: warnings > 1)
        await poll(write, lambda log_bytes: log_bytes <= 2 * LOG_PAGES * PAGE_BYTES)
    first, second = logs
    assert (first["event"], first["log_level"]) == ("sqlite.log_held", "warning")
    assert [f"(pid {reader})" in name for name in first["readers"]] == [True]
    assert first["log_bytes"] >= first["held_bytes"] >= 4 * LOG_PAGES * PAGE_BYTES
    assert second["log_bytes"] >= 2 * first["log_bytes"]


class FirstFailure:
    """Notes the failure that would end the process."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, BaseException]] = []

    def __call__(self, event: str, error: BaseException) -> None:
        self.seen.append((event, error))

    async def come(self, checkpoints: Checkpointer, writing: apsw.Connection) -> None:
        """Commit until there is a failure."""

        async def failures_after_a_commit() -> int:
            writing.execute(INSERT_FEW)
            checkpoints.between_commits()
            return len(self.seen)

        await poll(failures_after_a_commit, lambda failures: failures > 0)


async def test_a_failed_sync_of_copied_pages_ends_the_process_while_a_reader_holds_the_log(
    path: Path, writing: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite copies the pages before the reader's view and notes them as copied, but does not sync
    them."""

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    failure = FirstFailure()
    writing.execute(INSERT_FEW)
    with path.open("rb") as file, foreign_reader(path):
        checkpoints = Checkpointer(
            path, file.fileno(), writing, failure, DiskSpace(path, 0), log_pages=LOG_PAGES
        )
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fail)
            await failure.come(checkpoints, writing)
        checkpoints.close()
    event, error = failure.seen[0]
    assert event == "sqlite.storage_failed"
    assert isinstance(error, OSError)


class UnsyncedFile(apsw.VFSFile):
    """Cannot be synced by SQLite."""

    def xSync(self, flags: int) -> None:  # noqa: N802
        error = apsw.IOError("disk I/O error")
        error.extendedresult = apsw.SQLITE_IOERR_FSYNC  # type: ignore[attr-defined]
        raise error


class UnsyncedDisk(apsw.VFS):
    """Lets SQLite's own syncs of the database file fail."""

    def __init__(self) -> None:
        super().__init__("unsynced", "unix")

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        is_database = flags[0] & apsw.SQLITE_OPEN_MAIN_DB
        return (UnsyncedFile if is_database else apsw.VFSFile)("unix", name, flags)


async def test_a_failed_sync_by_sqlite_ends_the_process(
    path: Path, writing: apsw.Connection
) -> None:
    """The writer's step copies what came after the thread's."""
    failure = FirstFailure()
    disk = UnsyncedDisk()
    with path.open("rb") as file, closing(apsw.Connection(str(path), vfs="unsynced")) as other:
        other.pragma("wal_autocheckpoint", 0)
        checkpoints = Checkpointer(
            path, file.fileno(), other, failure, DiskSpace(path, 0), log_pages=LOG_PAGES
        )
        await failure.come(checkpoints, other)
        checkpoints.close()
    disk.unregister()
    event, error = failure.seen[0]
    assert (event, type(error)) == ("sqlite.storage_failed", apsw.IOError)
