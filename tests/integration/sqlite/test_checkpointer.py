"""The checkpointer: an error delays a checkpoint, and a reader that holds the log is named."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk.checkpointer import LOG_PAGES_BEFORE_CHECKPOINT, Checkpointer
from duetime.stores.sqlite.disk.space import DiskSpace
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

READER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("BEGIN")
database.execute("SELECT count(*) FROM written").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def reader(path: Path, writing: apsw.Connection) -> Iterator[subprocess.Popen[bytes]]:
    """Another program with a read transaction, which it ends when its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reading\n"
        yield process
        process.kill()


async def test_a_reader_that_holds_the_log_is_named_and_the_log_shrinks_when_it_ends(
    path: Path, writing: apsw.Connection, reader: subprocess.Popen[bytes]
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

        await poll(warnings_after_a_commit, lambda warnings: warnings > 1)
        assert reader.stdin is not None
        reader.stdin.close()
        reader.wait()
        await poll(write, lambda log_bytes: log_bytes <= 2 * LOG_PAGES * PAGE_BYTES)
    first, second = logs
    assert (first["event"], first["log_level"]) == ("sqlite.log_held", "warning")
    assert [f"(pid {reader.pid})" in name for name in first["readers"]] == [True]
    assert first["log_bytes"] >= first["held_bytes"] >= 4 * LOG_PAGES * PAGE_BYTES
    assert second["log_bytes"] >= 2 * first["log_bytes"]
