"""The bare limit of PostgreSQL: the same rows in the same batches, from a bare loop of the driver.

New timers are inserted, and claims and settlements move rows between tables, each on its own
connection. There are no fences, ledgers or conflicts. Each batch is on disk before the next.
"""

import asyncio
import gc
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import asyncpg
import msgspec
import uvloop

from bench.harness.child import Child, answer_parent
from bench.harness.load_generator import CONNECTIONS
from bench.stores.postgres_preload import DAY_US, attempt_at, encoded
from bench.stores.sqlite_preload import CALLBACK
from duetime.domain.namespace import DEFAULT_NAMESPACE, DEFAULT_SHARDS
from duetime.stores.postgres.connections import PLANS_BY_INDEX
from duetime.stores.postgres.tables import SHARED_COLUMNS

SCHEMA = "bench_limit"
# The most creates that can share a commit, and the most timers of a claim.
INSERT_BATCH = CONNECTIONS
MOVE_BATCH = 500
TIMEOUT_SECONDS = 120.0

TABLES = (
    ("pending", "pending_timers"),
    ("executing", "executing_timers"),
    ("finished", "finished_timers"),
)
FINISHED_COLUMNS = SHARED_COLUMNS.replace("attempts", "$4::text").replace(
    "updated_at", "$3::bigint"
)
INSERT = """
    INSERT INTO pending (created_at, updated_at, execute_at, due_at, epoch, shard, attempt,
                         failures, claim_number, timer_uuid, namespace, id, delivery_id, callback)
    SELECT $5::bigint, $5, due_at, due_at, 0, shard, 0, 0, 0, timer_uuid, $6::text, id, id, $7::text
    FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::int[]) AS batch (
        id, timer_uuid, due_at, shard)
"""
CLAIM = f"""
    WITH gone AS (
        DELETE FROM pending USING unnest($1::text[]) AS batch (id)
        WHERE pending.namespace = $2 AND pending.id = batch.id RETURNING pending.*)
    INSERT INTO executing ({SHARED_COLUMNS}, claimed_at)
    SELECT {SHARED_COLUMNS}, $3::bigint FROM gone RETURNING id, delivery_id, callback
"""
SETTLE = f"""
    WITH gone AS (
        DELETE FROM executing USING unnest($1::text[]) AS batch (id)
        WHERE executing.namespace = $2 AND executing.id = batch.id RETURNING executing.*)
    INSERT INTO finished ({SHARED_COLUMNS}, status, executed_at)
    SELECT {FINISHED_COLUMNS}, 2, $3 FROM gone
"""


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """`schema` holds the store's tables, whose definitions are copied."""

    url: str
    schema: str
    count: int


class DatabaseLimit(msgspec.Struct, frozen=True, kw_only=True):
    """`moves_per_second` counts timers that were claimed and settled."""

    count: int
    insert_batch: int
    inserts_per_second: float
    move_batch: int
    moves_per_second: float


async def measure(rows: Rows) -> DatabaseLimit:
    pool = await asyncpg.create_pool(
        rows.url,
        min_size=2,
        max_size=2,
        server_settings={
            "search_path": SCHEMA,
            "application_name": "duetime-bench",
            **PLANS_BY_INDEX,
        },
    )
    async with pool, pool.acquire() as first, pool.acquire() as second:
        await make_tables(first, rows.schema)
        try:
            return await write_all(first, second, rows.count)
        finally:
            await first.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


async def make_tables(connection: Any, schema: str) -> None:
    await connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
    for name, original in TABLES:
        await connection.execute(f"CREATE TABLE {name} (LIKE {schema}.{original} INCLUDING ALL)")


async def write_all(first: Any, second: Any, count: int) -> DatabaseLimit:
    now_us = time.time_ns() // 1_000
    ids = [str(uuid.uuid4()) for _ in range(count)]
    uuids = [uuid.uuid4().bytes for _ in range(count)]
    due = [now_us + DAY_US + number * 1_000 for number in range(count)]
    shards = [number % DEFAULT_SHARDS for number in range(count)]
    callback = encoded(CALLBACK)
    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    for part in parts(count, INSERT_BATCH):
        values = (ids[part], uuids[part], due[part], shards[part])
        await first.execute(INSERT, *values, now_us, DEFAULT_NAMESPACE, callback)
    inserted = time.perf_counter()
    await move_all(first, second, ids, now_us)
    moved = time.perf_counter()
    assert await first.fetchval("SELECT count(*) FROM finished") == count
    return DatabaseLimit(
        count=count,
        insert_batch=INSERT_BATCH,
        inserts_per_second=round(count / (inserted - started), 1),
        move_batch=MOVE_BATCH,
        moves_per_second=round(count / (moved - inserted), 1),
    )


async def move_all(first: Any, second: Any, ids: list[str], now_us: int) -> None:
    """One connection claims the next batch while the other settles the previous one."""
    attempts = encoded([attempt_at(now_us)])
    settling: asyncio.Task[None] | None = None
    for part in parts(len(ids), MOVE_BATCH):
        await first.fetch(CLAIM, ids[part], DEFAULT_NAMESPACE, now_us)
        if settling is not None:
            await settling
        settling = asyncio.create_task(
            second.execute(SETTLE, ids[part], DEFAULT_NAMESPACE, now_us, attempts)
        )
    if settling is not None:
        await settling


def parts(count: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))


def measure_database(rows: Rows) -> DatabaseLimit:
    """Called in the parent: run the loop in a child process."""
    with Child("bench.limits.database") as child:
        return child.ask(rows, DatabaseLimit, TIMEOUT_SECONDS)


def main() -> None:
    rows = msgspec.json.decode(sys.stdin.buffer.readline(), type=Rows)
    answer_parent(uvloop.run(measure(rows)))


if __name__ == "__main__":
    main()
