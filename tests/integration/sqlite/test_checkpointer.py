"""The checkpointer: an error delays a checkpoint, and does not end them."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk.checkpointer import LOG_PAGES_BEFORE_CHECKPOINT, Checkpointer
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
        closing(Checkpointer(path, file.fileno(), writing, must_not_end)) as checkpoints,
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
