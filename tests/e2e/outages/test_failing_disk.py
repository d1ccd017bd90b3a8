"""A disk that fails: the process ends at once, and the next start has every accepted timer."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from duetime.cli.terminal import ExitCode
from duetime.domain.instants import format_instant
from tests.real_server.command import Command
from tests.real_server.failing_disk import FailingDisk
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import count_timers, create_timer, in_ms, timer_body

pytestmark = pytest.mark.e2e

NOWHERE = "http://127.0.0.1:9/"
BATCH = "/api/v1/timers/batch"
TIMERS_OF_BATCH = 30
BATCHES_OF_A_LOG = 5
"""Batches that fill a log of 32 MiB, after which it is copied into the database file."""


def large_batch(number: int) -> dict[str, object]:
    timer = {
        "executeAt": format_instant(in_ms(3_600_000)),
        "callbackUrl": NOWHERE,
        "payload": "x" * 250_000,
    }
    return {"timers": [{"id": f"{number}-{each}", **timer} for each in range(TIMERS_OF_BATCH)]}


async def fill_log(api: httpx.AsyncClient) -> int:
    """Create timers until the server is gone, or the log is full; the number of those accepted."""
    accepted = 0
    for number in range(2 * BATCHES_OF_A_LOG):
        try:
            answer = await api.post(BATCH, json=large_batch(number))
        except httpx.TransportError:
            break
        assert answer.status_code == 200
        accepted += TIMERS_OF_BATCH
    return accepted


async def test_a_failed_sync_of_the_file_ends_the_process_and_the_log_is_replayed(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    async with ServerProcess(tmp_path, **failing_disk.environ) as server:
        async with server.client() as api:
            await create_timer(api, NOWHERE, in_ms(3_600_000))
            failing_disk.fail("sync", "timers.db")
            accepted = 1 + await fill_log(api)
        assert await server.ended() == ExitCode.STORAGE_FAILED
        (line,) = [entry for entry in server.logs if entry["level"] == "critical"]
        assert line["event"] == "sqlite.storage_failed"
        assert line["file"] == str(tmp_path / "timers.db")
        assert "start" in str(line["advice"])
        # An orderly close would have copied and removed it.
        assert (tmp_path / "timers.db-wal").stat().st_size > 32 * 2**20
        failing_disk.heal()
        await server.start()
        async with server.client() as api:
            # The last batch may be in the log without an answer.
            assert (await count_timers(api))["pending"] in (accepted, accepted + TIMERS_OF_BATCH)
            assert (await api.get("/healthz")).status_code == 200


@pytest.mark.parametrize("call", ["sync", "write"])
async def test_a_failing_log_ends_the_process_without_an_answer(
    tmp_path: Path, failing_disk: FailingDisk, call: str
) -> None:
    async with ServerProcess(tmp_path, **failing_disk.environ) as server:
        async with server.client() as api:
            accepted = await create_timer(api, NOWHERE, in_ms(3_600_000))
            failing_disk.fail(call, "timers.db-wal")
            with pytest.raises(httpx.TransportError):
                await api.post("/timers", json=timer_body(NOWHERE, in_ms(3_600_000)))
        assert await server.ended() == ExitCode.STORAGE_FAILED
        failing_disk.heal()
        await server.start()
        async with server.client() as api:
            assert (await api.get(f"/timers/{accepted}")).json()["data"]["status"] == "pending"


@pytest.mark.parametrize("is_link", [False, True])
async def test_the_log_is_copied_again_even_if_another_program_keeps_its_index(
    tmp_path: Path, failing_disk: FailingDisk, is_link: bool
) -> None:
    """The index in `timers.db-shm` notes what was copied. It lives as long as any program has the
    database open, so it must not go on saying that pages were copied which are not on disk. The
    pages before the view of a reader are copied, and noted, without a sync by SQLite."""
    path = file = tmp_path / "timers.db"
    if is_link:
        file = tmp_path / "elsewhere" / "timers.db"
        file.parent.mkdir()
        path.symlink_to(file)
    async with ServerProcess(tmp_path, **failing_disk.environ) as server, server.client() as api:
        assert (await api.post(BATCH, json=large_batch(2 * BATCHES_OF_A_LOG))).status_code == 200
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM namespaces").fetchone()
            failing_disk.fail("sync", "timers.db")
            await fill_log(api)
            assert await server.ended() == ExitCode.STORAGE_FAILED
            copied_pages = file.with_name("timers.db-shm").read_bytes()[96:100]
            assert copied_pages == bytes(4)


async def test_a_failed_sync_at_an_orderly_stop_is_reported(
    tmp_path: Path, failing_disk: FailingDisk
) -> None:
    async with ServerProcess(tmp_path, **failing_disk.environ) as server:
        async with server.client() as api:
            accepted = await create_timer(api, NOWHERE, in_ms(3_600_000))
        failing_disk.fail("sync", "timers.db")
        assert await server.stop() == ExitCode.STORAGE_FAILED
        (line,) = [entry for entry in server.logs if entry["level"] == "critical"]
        assert line["event"] == "sqlite.storage_failed"
        failing_disk.heal()
        await server.start()
        async with server.client() as api:
            assert (await api.get(f"/timers/{accepted}")).json()["data"]["status"] == "pending"
        assert await server.stop() == 0
        assert not (tmp_path / "timers.db-wal").exists()


async def test_dev_ends_as_well(tmp_path: Path, failing_disk: FailingDisk) -> None:
    async with Command("dev", "--port", "0", directory=tmp_path, **failing_disk.environ) as command:
        await command.line(containing="API:")
        # The demo timer is written next.
        failing_disk.fail("sync", "duetime-dev.db-wal")
        await command.error_line(containing="sqlite.storage_failed")
        assert await command.ended() == ExitCode.STORAGE_FAILED
