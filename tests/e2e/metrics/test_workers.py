"""One scrape sees all workers, however some of them fare."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.metrics.scraping import Families, label_values, scrape, scrape_by, value
from tests.polling import poll
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms

pytestmark = pytest.mark.e2e

WORKERS = 3
ANSWERING = "duetime_workers_answering"
REQUESTS = "duetime_http_requests_total"
STARTED = "process_start_time_seconds"

Settings = dict[str, str]


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """For sockets, whose paths must be short; those of `tmp_path` are long in parallel runs."""
    with TemporaryDirectory(prefix="d") as directory:
        yield Path(directory)


@pytest.fixture
def shared(postgres_url: str, postgres_schema: str, short_directory: Path) -> Settings:
    """Settings of workers, which have a temporary directory of their own."""
    return {
        "DATABASE_URL": postgres_url,
        "PG_SCHEMA": postgres_schema,
        "WORKERS": str(WORKERS),
        "TMPDIR": str(short_directory),
    }


@pytest.fixture
async def service(tmp_path: Path, shared: Settings) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path, **shared) as process:
        yield process


def pid_of(service: ServerProcess, worker: int) -> int:
    """The latest process of the worker."""
    pids = [
        entry["pid"]
        for entry in service.logs
        if entry["event"] == "worker.started" and entry["worker"] == worker
    ]
    assert isinstance(pids[-1], int)
    return pids[-1]


def workers_in(families: Families) -> set[str]:
    return label_values(families, "worker") - {""}


def scrapes_of(families: Families, worker: int) -> float:
    """Scrapes that the worker has answered."""
    return value(families, REQUESTS, operation="metrics", worker=str(worker))


async def scrape_all(service: ServerProcess, form: str = "text") -> Families:
    """A scrape that lacks no worker. A worker is asked once it says that it has started."""
    return await poll(
        lambda: scrape(service.url, form), lambda families: value(families, ANSWERING) == WORKERS
    )


@pytest.mark.parametrize("form", ["text", "openmetrics"])
async def test_one_scrape_has_the_numbers_of_all_workers(service: ServerProcess, form: str) -> None:
    for _ in range(12):
        # Each has a connection of its own, which the system gives to any worker.
        async with service.client() as api:
            await create_timer(api, "http://127.0.0.1:9/", in_ms(3_600_000))
    families = await scrape_all(service, form)
    assert workers_in(families) == {"1", "2", "3"}
    created = {"operation": "createTimer", "status": "201"}
    assert value(families, REQUESTS, **created) == 12
    for name in (ANSWERING, "duetime_workers"):
        (sample,) = families[name].samples
        assert (sample.labels, sample.value) == ({}, WORKERS)


async def test_a_worker_that_hangs_is_left_out_and_counted(service: ServerProcess) -> None:
    await scrape_all(service)
    async with service.client() as api:
        # The connection is to one worker, and the other two are asked by it.
        before, after = await scrape_by(api), await scrape_by(api)
        hanging = pid_of(service, 1 if scrapes_of(before, 1) == scrapes_of(after, 1) else 2)
        os.kill(hanging, signal.SIGSTOP)
        try:
            families = await scrape_by(api)
            assert value(families, ANSWERING) == WORKERS - 1
            assert len(workers_in(families)) == WORKERS - 1
        finally:
            os.kill(hanging, signal.SIGCONT)
        families = await scrape_by(api)
        assert value(families, ANSWERING) == WORKERS


async def test_a_worker_that_dies_is_left_out_until_its_successor_answers(
    service: ServerProcess,
) -> None:
    before = await scrape_all(service)
    seen = len(service.logs)
    os.kill(pid_of(service, 3), signal.SIGKILL)
    await service.wait_for_log("worker.started", after=seen)
    after = await scrape_all(service)
    assert value(after, STARTED, worker="3") > value(before, STARTED, worker="3")
    for worker in ("1", "2"):
        assert value(after, STARTED, worker=worker) == value(before, STARTED, worker=worker)


async def test_workers_that_are_replaced_are_shown_once(service: ServerProcess) -> None:
    before = await scrape_all(service)
    seen = len(service.logs)
    os.kill(service.pid, signal.SIGHUP)
    await service.wait_for_log("service.rolled", after=seen)
    after = await scrape_all(service)
    for worker in ("1", "2", "3"):
        assert value(after, STARTED, worker=worker) > value(before, STARTED, worker=worker)
    assert len(after[STARTED].samples) == WORKERS


async def test_every_worker_answers_for_all_on_the_own_port(
    tmp_path: Path, shared: Settings, free_port: int
) -> None:
    async with ServerProcess(tmp_path, METRICS_PORT=str(free_port), **shared) as service:
        # Each scrape has a connection of its own, which the system gives to any worker.
        await poll(
            lambda: scrape(f"http://127.0.0.1:{free_port}"),
            lambda families: all(scrapes_of(families, number) for number in (1, 2, 3)),
        )
        assert await service.stop() == 0


async def test_the_directory_is_private_and_gone_after_the_end(
    service: ServerProcess, short_directory: Path
) -> None:
    (directory,) = short_directory.glob("duetime-metrics-*")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in directory.iterdir()} == {"1.sock", "2.sock", "3.sock"}
    assert await service.stop() == 0
    assert not directory.exists()


async def test_without_a_directory_a_scrape_shows_one_worker(
    tmp_path: Path, shared: Settings
) -> None:
    # The name of a socket may not be that long.
    long = tmp_path / ("x" * 120)
    long.mkdir()
    async with ServerProcess(tmp_path, **{**shared, "TMPDIR": str(long)}) as service:
        await service.wait_for_log("metrics.workers_apart")
        families = await scrape(service.url)
        assert value(families, ANSWERING) == 1
        assert value(families, "duetime_workers") == WORKERS
        assert len(workers_in(families)) == 1
