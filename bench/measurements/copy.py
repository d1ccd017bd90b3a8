"""`duetime copy` of a SQLite file into PostgreSQL, beside a bare COPY of the same rows."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

import asyncpg
import msgspec

from bench.measurements.backup import run
from bench.measurements.store_audit import audit_store
from bench.stores.postgres import PostgresSchema

PATIENCE_SECONDS = 1_800.0
LIMIT_SCHEMA = "bench_copy_limit"
TABLES = ("pending_timers", "finished_timers")

INDEXES = """
    SELECT pg_get_indexdef(indexrelid) FROM pg_index
    WHERE indrelid = ($1 || '.' || $2)::regclass
"""


class Copied(msgspec.Struct, frozen=True):
    """The fields of the command's JSON that are used."""

    timers: int
    equal: bool
    copy_ms: int
    compare_ms: int


class Limit(msgspec.Struct, frozen=True):
    """A bare COPY of the same rows into tables without indexes, then the same indexes."""

    load_seconds: float
    index_seconds: float


class CopyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` is the whole command, from its start to its end. The CPU times are those of the
    command, and of the database meanwhile if it was started for the run."""

    timers: int
    seconds: float
    copy_seconds: float
    compare_seconds: float
    command_cpu_seconds: float
    database_cpu_seconds: float | None
    limit: Limit
    faults: list[str]


def measure_copy(file: Path, store: PostgresSchema) -> CopyFigures:
    """The file is filled, and the schema does not exist yet."""
    database_before = store.host.cpu_seconds()
    children_before = os.times()
    started = time.perf_counter()
    copied = copy(file, store)
    seconds = time.perf_counter() - started
    children = os.times()
    database = store.host.cpu_seconds()
    faults = [] if copied.equal else ["copy: both sides differ"]
    faults += [f"copy: {fault}" for fault in audit_store(store).faults]
    return CopyFigures(
        timers=copied.timers,
        seconds=round(seconds, 2),
        copy_seconds=copied.copy_ms / 1_000,
        compare_seconds=copied.compare_ms / 1_000,
        command_cpu_seconds=round(
            children.children_user
            + children.children_system
            - children_before.children_user
            - children_before.children_system,
            2,
        ),
        database_cpu_seconds=(
            None
            if database is None or database_before is None
            else round(database - database_before, 2)
        ),
        limit=asyncio.run(measure_limit(store)),
        faults=faults,
    )


def copy(file: Path, store: PostgresSchema) -> Copied:
    arguments = ["--from", str(file), "--to", store.host.url, "--to-schema", store.schema]
    return msgspec.json.decode(run(store, "copy", *arguments, "--quiet"), type=Copied)


async def measure_limit(store: PostgresSchema) -> Limit:
    connection = await asyncpg.connect(store.host.url, command_timeout=PATIENCE_SECONDS)
    load_seconds = index_seconds = 0.0
    try:
        await connection.execute(f"CREATE SCHEMA {LIMIT_SCHEMA}")
        for table in TABLES:
            source, target = f"{store.schema}.{table}", f"{LIMIT_SCHEMA}.{table}"
            await connection.execute(f"CREATE TABLE {target} (LIKE {source} INCLUDING DEFAULTS)")
            with tempfile.TemporaryFile(dir=store.directory) as rows:
                await connection.copy_from_query(
                    f"SELECT * FROM {source}", output=rows, format="binary"
                )
                rows.seek(0)
                started = time.perf_counter()
                await connection.copy_to_table(
                    table, schema_name=LIMIT_SCHEMA, source=rows, format="binary"
                )
                load_seconds += time.perf_counter() - started
            started = time.perf_counter()
            for (definition,) in await connection.fetch(INDEXES, store.schema, table):
                bare = definition.replace(" ON ONLY ", " ON ", 1)
                await connection.execute(bare.replace(f" {store.schema}.", f" {LIMIT_SCHEMA}.", 1))
            index_seconds += time.perf_counter() - started
    finally:
        await connection.execute(f"DROP SCHEMA IF EXISTS {LIMIT_SCHEMA} CASCADE")
        await connection.close()
    return Limit(round(load_seconds, 2), round(index_seconds, 2))
