"""A scrape of a server with many timers and namespaces: quick, and with the right numbers.

`DUETIME_SCRAPED_TIMERS=10000000` runs it at full size, which takes minutes to prepare.
"""

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from duetime.clock import SystemClock
from tests.polling import poll
from tests.real_server.databases import Database, on_postgresql
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms

pytestmark = pytest.mark.e2e

NAMESPACES = 200
TIMERS = int(os.environ.get("DUETIME_SCRAPED_TIMERS", "20000"))
MAX_SECONDS = 0.05
NOWHERE = "http://127.0.0.1:9/"

# Each tenth timer has failed, the others are due in years. Rows come in the order of indexes.
_FILL = """
    CREATE TEMP TABLE numbers AS
        WITH RECURSIVE number (n) AS (
            SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < {timers} - 1)
        SELECT n, printf('n%03d', n * {namespaces} / {timers}) AS namespace FROM number;
    INSERT INTO namespaces (name, num_shards) SELECT DISTINCT namespace, 16 FROM numbers;
    INSERT INTO timers (row_id, namespace, id, shard, timer_uuid, created_at, delivery_id, callback)
        SELECT n + 1, namespace, printf('t%09d', n), n % 16, randomblob(16), n, 'd' || n,
               '{{"type":"http","url":"http://127.0.0.1:9/"}}'
        FROM numbers;
    INSERT INTO live_timers (row_id, namespace, shard, timer_uuid, created_at, updated_at,
                             execute_at, due_at)
        SELECT row_id, namespace, shard, timer_uuid, created_at, created_at,
               4000000000000000 + row_id, 4000000000000000 + row_id
        FROM timers WHERE row_id % 10 <> 0;
    INSERT INTO finished_timers (row_id, namespace, timer_uuid, created_at, updated_at, execute_at,
                                 due_at, status, attempt, failures, claim_number, epoch)
        SELECT row_id, namespace, timer_uuid, created_at, created_at, created_at, created_at,
               3, 1, 1, 1, 1
        FROM timers WHERE row_id % 10 = 0;
    INSERT INTO counts SELECT namespace, 0, count(*) FROM live_timers GROUP BY namespace;
    INSERT INTO counts SELECT namespace, 3, count(*) FROM finished_timers GROUP BY namespace;
"""


def fill(path: Path) -> None:
    """Write timers as the store does, but without its promises."""
    database = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode = off", "synchronous = off", "cache_size = -500000"):
        database.execute(f"PRAGMA {setting}")
    database.executescript(f"BEGIN; {_FILL.format(timers=TIMERS, namespaces=NAMESPACES)} COMMIT;")
    database.execute("PRAGMA journal_mode = wal")
    database.close()


async def samples(api: httpx.AsyncClient) -> dict[str, dict[tuple[str, ...], float]]:
    """The values of all series by the name of their metric and the values of their labels."""
    answer = await api.get("/metrics")
    assert answer.status_code == 200
    shown: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            labels: Mapping[str, str] = sample.labels
            shown.setdefault(sample.name, {})[tuple(labels.values())] = sample.value
    return shown


@pytest.mark.exclusive
@pytest.mark.timeout(1_800)
async def test_a_scrape_is_quick_however_many_timers_there_are(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, RETENTION_DAYS="0")
    async with server:
        pass
    fill(tmp_path / "timers.db")
    clock = SystemClock()

    async with server, server.client() as api:
        await poll(
            lambda: samples(api),
            until=lambda shown: len(shown.get("duetime_timers", {})) >= 3 * NAMESPACES,
        )
        seconds = []
        for _ in range(20):
            began_seconds = clock.monotonic()
            await api.get("/metrics")
            seconds.append(clock.monotonic() - began_seconds)
        shown = await samples(api)

    timers = shown["duetime_timers"]
    assert timers["n007", "pending"] == TIMERS / NAMESPACES * 9 / 10
    assert sum(count for (_, status), count in timers.items() if status == "failed") == TIMERS / 10
    assert sum(shown["duetime_timers_overdue"].values()) == 0
    assert shown["duetime_disk_free_bytes"][()] > shown["duetime_disk_reserve_bytes"][()] > 0
    assert shown["duetime_store_commit_size_count"][()] > 0
    assert shown["duetime_sqlite_wal_bytes"][()] >= 0
    counting = shown["duetime_store_call_duration_seconds_sum"]
    assert counting["count_by_namespace",] < MAX_SECONDS
    assert min(seconds) < MAX_SECONDS


@on_postgresql
async def test_a_scrape_shows_the_timers_and_connections_of_postgresql(
    tmp_path: Path, database: Database
) -> None:
    async with ServerProcess(tmp_path, **database.settings) as server, server.client() as api:
        for _ in range(3):
            await create_timer(api, NOWHERE, in_ms(3_600_000))
        shown = await poll(
            lambda: samples(api),
            until=lambda shown: (
                shown.get("duetime_timers", {}).get(("default", "pending")) == 3
                and bool(shown.get("duetime_postgres_oldest_transaction_age_seconds"))
            ),
        )

    assert shown["duetime_timers_created_total"]["default", "http"] == 3
    assert shown["duetime_postgres_connections"]["idle",] >= 1
