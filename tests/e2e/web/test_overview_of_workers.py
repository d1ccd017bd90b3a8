"""The overview of several workers on one database: figures of all, and the loss of one in words."""

import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = pytest.mark.e2e

WORKERS = 3
COUNT = 600


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """For sockets, whose paths must be short."""
    with TemporaryDirectory(prefix="d") as directory:
        yield Path(directory)


@pytest.fixture
async def service(
    tmp_path: Path, postgres_url: str, postgres_schema: str, short_directory: Path
) -> AsyncIterator[ServerProcess]:
    settings = {
        "DATABASE_URL": postgres_url,
        "PG_SCHEMA": postgres_schema,
        "WORKERS": str(WORKERS),
        "TMPDIR": str(short_directory),
    }
    async with ServerProcess(tmp_path, **settings) as process:
        yield process


async def words(api: httpx.AsyncClient, path: str) -> str:
    answer = await api.get(path)
    assert answer.status_code == 200, answer.text
    content = answer.text.partition("<main")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", content)).split())


async def test_the_overview_is_of_all_workers(service: ServerProcess) -> None:
    async with CallbackReceiver() as receiver, service.client() as api:
        receiver.reaction = Answer(body=b'{"ok":true}')
        await poll(lambda: words(api, "/ui/cluster"), lambda page: page.count("working") == WORKERS)
        timers = [v1_body(f"t{number}", receiver.url, in_ms(2_000)) for number in range(COUNT)]
        answer = await api.post(f"{TIMERS}/batch", json={"timers": timers})
        assert answer.status_code == 200, answer.text
        overview = await poll(lambda: words(api, "/ui"), lambda page: f"{COUNT} completed" in page)
        assert f"{WORKERS} members, 16 shards" in overview
        # All attempts fall into one slot of five seconds, or into two. No worker owns half of the
        # shards.
        busiest = await poll(
            lambda: words(api, "/ui"), lambda page: fired_per_second(page) >= 0.49 * COUNT / 5
        )
        assert f"Rates are sums over {WORKERS} members" in busiest


async def test_a_worker_that_is_killed_is_told_in_words(service: ServerProcess) -> None:
    async with service.client() as api:
        await poll(lambda: words(api, "/ui/cluster"), lambda page: page.count("working") == WORKERS)
        started = [entry for entry in service.logs if entry["event"] == "worker.started"]
        pid = started[0]["pid"]
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        await poll(
            lambda: words_past_the_dead(api, "/ui"),
            lambda page: "was lost, and others took its shards" in page,
        )


async def words_past_the_dead(api: httpx.AsyncClient, path: str) -> str:
    """As `words`; none if the worker that had the connection was killed."""
    try:
        return await words(api, path)
    except httpx.TransportError:
        return ""


def fired_per_second(page: str) -> float:
    """The figure of the last slot; 0 where it is not known."""
    found = re.search(r"Fired per second ([0-9.,]+)", page)
    return 0.0 if found is None else float(found[1].replace(",", ""))
