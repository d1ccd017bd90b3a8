"""Fills a PostgreSQL schema with timers that are not due during the run.

The store's API would take an hour for ten million timers. SQL generates the same rows, partitions
and ledger on one connection per processor, and the indexes are built afterwards.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import asyncpg
import msgspec

from bench.harness.progress import Steps
from bench.stores.sqlite_preload import CALLBACK
from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.timer import Attempt
from tests.postgres.options import store_options

CHUNK = 250_000
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
DUE_FROM_US = 3 * HOUR_US
DUE_WITHIN_US = 30 * DAY_US
FINISHED_WITHIN_US = 20 * DAY_US
# Tallies count timers created or finished since their start: these must be older.
FINISHED_BEFORE_US = HOUR_US
CREATED_WITHIN_US = 5 * DAY_US
CONNECTIONS = os.cpu_count() or 1

SETTINGS = {
    "application_name": "duetime-bench",
    # A checkpoint afterwards makes these commits durable.
    "synchronous_commit": "off",
    "maintenance_work_mem": "1GB",
    # One connection per processor is enough parallelism.
    "max_parallel_maintenance_workers": "0",
}

# Half of the ids start with the instant of creation, as ids made by Duetime; the others are random,
# as ids chosen by clients. SQL cannot hash the id to its shard, so the shard is random: these
# timers are never claimed.
NUMBERED = """
    SELECT created_at, CASE WHEN number % 2 = 0
        THEN left(lpad(to_hex(created_at / 1000), 12, '0'), 8)
             || '-' || right(to_hex(created_at / 1000), 4) || '-7' || substr(chance::text, 16)
        ELSE chance::text END AS id, chance, {more}
    FROM (SELECT number, gen_random_uuid() AS chance, {instant}
          FROM generate_series($1::bigint, $2::bigint - 1) AS number) AS numbered
"""
SHARED_COLUMNS = (
    "namespace, id, shard, timer_uuid, delivery_id, callback, created_at, epoch, failures"
)
SHARED_VALUES = (
    "$5, id, floor(random() * $6::int)::int, uuid_send(chance), chance::text, $7, created_at, 0, 0"
)
INSERT_PENDING = f"""
    INSERT INTO pending_timers ({SHARED_COLUMNS}, updated_at, execute_at, due_at, attempt,
                                claim_number)
    SELECT {SHARED_VALUES}, created_at, due_at, due_at, 0, 0
    FROM ({
    NUMBERED.format(
        more="$8::bigint + floor(random() * $9::bigint)::bigint AS due_at",
        instant="($3::bigint + number * $4::float8)::bigint AS created_at",
    )
}) AS made
"""
# One timer in twenty has failed, one in fifty was canceled.
INSERT_FINISHED = """
    INSERT INTO {partition} ({columns}, updated_at, execute_at, due_at, attempt, claim_number,
                             status, executed_at, attempts, last_error)
    SELECT {values}, finished_at, finished_at - 2000, finished_at - 2000, 1, 1, status,
           CASE WHEN status = 2 THEN finished_at END, $8,
           CASE WHEN status = 3 THEN 'HTTP 503' END
    FROM ({numbered}) AS made
"""
NUMBERED_FINISHED = NUMBERED.format(
    more=(
        "finished_at, CASE WHEN number % 20 = 3 THEN 3 WHEN number % 50 = 7 THEN 4 ELSE 2 END"
        " AS status"
    ),
    instant=(
        "($3::bigint + number * $4::float8)::bigint AS finished_at,"
        f" ($3::bigint + number * $4::float8)::bigint - {HOUR_US} AS created_at"
    ),
)
INDEXES_OF = """
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
    FROM pg_index WHERE indrelid = $1::regclass
"""

Job = Callable[[Any], Awaitable[int]]
"""Work for one connection. Returns the amount done."""


class Partition(msgspec.Struct, frozen=True):
    name: str
    from_inclusive: int
    to_exclusive: int

    def overlap_us(self, from_us: int, to_us: int) -> int:
        return min(self.to_exclusive, to_us) - max(self.from_inclusive, from_us)


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """Timers to add to a schema whose tables exist."""

    url: str
    schema: str
    pending: int
    finished: int
    analyze: bool
    """Whether to vacuum and analyze at once instead of leaving both to autovacuum."""


def fill_tables(filling: Filling, steps: Steps) -> None:
    asyncio.run(fill(filling, steps))


async def fill(filling: Filling, steps: Steps) -> None:
    pool = await asyncpg.create_pool(
        filling.url,
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        command_timeout=None,
        server_settings=SETTINGS | {"search_path": filling.schema},
    )
    async with pool:
        now_us = time.time_ns() // 1_000
        partitions = await history_of(pool, now_us)
        tables = ["pending_timers", *(each.name for each in partitions)]
        for each in partitions:
            # An index of an attached partition cannot be dropped alone.
            await pool.execute(f"ALTER TABLE finished_timers DETACH PARTITION {each.name}")
        indexes = await drop_indexes(pool, tables)
        rows = filling.pending + filling.finished
        with steps.step(f"  {rows:,} rows", total=rows) as advance_to:
            shards = await pool.fetchval(
                "SELECT num_shards FROM namespaces WHERE name = $1", DEFAULT_NAMESPACE
            )
            jobs = [
                *pending_jobs(filling.pending, now_us, shards),
                *finished_jobs(filling.finished, now_us, shards, partitions),
            ]
            await work_off(pool, jobs, advance_to)
        with steps.step(f"  {len(indexes)} indexes", total=len(indexes)) as advance_to:
            await work_off(pool, [statement_job(each) for each in indexes], advance_to)
        for each in partitions:
            await pool.execute(
                f"ALTER TABLE finished_timers ATTACH PARTITION {each.name}"
                f" FOR VALUES FROM ({each.from_inclusive}) TO ({each.to_exclusive})"
            )
        for table in tables:
            await pool.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")
        if filling.analyze:
            with steps.step("  vacuum and analyze", total=len(tables)) as advance_to:
                jobs = [statement_job(f"VACUUM (ANALYZE) {each}") for each in tables]
                await work_off(pool, jobs, advance_to)


async def history_of(pool: Any, now_us: int) -> list[Partition]:
    """The partitions of the time span to fill, created where missing."""
    width = store_options("").history_step
    first_us = now_us - FINISHED_WITHIN_US
    for instant in (*range(first_us, now_us, width), now_us):
        await pool.execute("SELECT add_history_partition($1, $2)", instant, width)
    rows = await pool.fetch(
        "SELECT name, from_inclusive, to_exclusive FROM history_partitions"
        " WHERE to_exclusive > $1 AND from_inclusive <= $2",
        first_us,
        now_us,
    )
    return [Partition(*row) for row in rows]


async def drop_indexes(pool: Any, tables: Iterable[str]) -> list[str]:
    """Returns the statements that create the indexes again."""
    definitions = []
    for table in tables:
        await pool.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        for name, definition in await pool.fetch(INDEXES_OF, table):
            await pool.execute(f"DROP INDEX {name}")
            definitions.append(definition)
    return definitions


def pending_jobs(count: int, now_us: int, shards: int) -> list[Job]:
    first_us = now_us - CREATED_WITHIN_US
    step_us = (CREATED_WITHIN_US - HOUR_US) / max(1, count)
    shared = (first_us, step_us, DEFAULT_NAMESPACE, shards, encoded(CALLBACK))
    due = (now_us + DUE_FROM_US, DUE_WITHIN_US - DUE_FROM_US)
    return [insert_job(INSERT_PENDING, *chunk, *shared, *due) for chunk in chunks_of(count)]


def finished_jobs(count: int, now_us: int, shards: int, partitions: list[Partition]) -> list[Job]:
    """Each partition gets rows in proportion to its share of the time span."""
    from_us, to_us = now_us - FINISHED_WITHIN_US, now_us - FINISHED_BEFORE_US
    used = [each for each in partitions if each.overlap_us(from_us, to_us) > 0]
    jobs = []
    left = count
    for each in used:
        is_last = each is used[-1]
        share = left if is_last else count * each.overlap_us(from_us, to_us) // (to_us - from_us)
        left -= share
        first_us = max(each.from_inclusive, from_us)
        step_us = each.overlap_us(from_us, to_us) / max(1, share)
        statement = INSERT_FINISHED.format(
            partition=each.name,
            columns=SHARED_COLUMNS,
            values=SHARED_VALUES,
            numbered=NUMBERED_FINISHED,
        )
        shared = (first_us, step_us, DEFAULT_NAMESPACE, shards, encoded(CALLBACK))
        attempts = encoded([attempt_at(first_us)])
        jobs += [insert_job(statement, *chunk, *shared, attempts) for chunk in chunks_of(share)]
    return jobs


def chunks_of(count: int) -> list[tuple[int, int]]:
    return [(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]


def encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def attempt_at(us: int) -> Attempt:
    moments = (Instant(us + later) for later in (0, 500, 1_000, 2_000))
    due_at, claimed_at, sent_at, answered_at = moments
    return Attempt(
        number=1,
        due_at=due_at,
        claimed_at=claimed_at,
        sent_at=sent_at,
        answered_at=answered_at,
        recorded_outcome=AttemptOutcome.COMPLETED,
    )


def insert_job(statement: str, start: int, end: int, *values: object) -> Job:
    async def insert(connection: Any) -> int:
        async with connection.transaction():
            await connection.execute(statement, start, end, *values)
            await connection.execute(
                "UPDATE ledger SET accepted = accepted + $1 WHERE slot = pg_backend_pid() % 256",
                end - start,
            )
        return end - start

    return insert


def statement_job(statement: str) -> Job:
    async def execute(connection: Any) -> int:
        await connection.execute(statement)
        return 1

    return execute


async def work_off(pool: Any, jobs: Iterable[Job], tell: Callable[[int], None]) -> None:
    """Run all jobs; each connection takes the next job when it has finished one."""
    remaining = iter(jobs)
    done = 0

    async def worker() -> None:
        nonlocal done
        async with pool.acquire() as connection:
            for job in remaining:
                done += await job(connection)
                tell(done)

    async with asyncio.TaskGroup() as workers:
        for _ in range(CONNECTIONS):
            workers.create_task(worker())
