"""The bare limit of batches and imports: the same timers straight into one table of the database.

There is no service, no HTTP, no check and no read. The loop runs in its own process.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import apsw
import asyncpg
import msgspec

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import PAYLOAD_BYTES, payload_text, random_id
from bench.harness.load_generator import RandomInstants
from bench.stores.store_under_test import StoreUnderTest
from duetime.stores.sqlite.connections import WRITER_CACHE_KIB
from duetime.stores.sqlite.disk.checkpointer import LOG_PAGES_BEFORE_CHECKPOINT

SCHEMA = "bench_insert_limit"
STRETCH = 50_000
TIMEOUT_SECONDS = 300.0
CALLBACK_URL = "http://127.0.0.1:9/"

# The columns that both stores index, and the content of a create.
TABLE = """
    CREATE TABLE timers (
        namespace TEXT NOT NULL, id TEXT NOT NULL, execute_at BIGINT NOT NULL,
        created_at BIGINT NOT NULL, callback_url TEXT NOT NULL, payload TEXT NOT NULL,
        timer_uuid {blob} NOT NULL, PRIMARY KEY (namespace, id))
"""
DUE_INDEX = "CREATE INDEX timers_due ON timers (execute_at)"
# The indexes that the SQLite store has on a pending timer.
SQLITE_INDEXES = (
    "CREATE INDEX timers_due ON timers (execute_at, timer_uuid)",
    "CREATE INDEX timers_created ON timers (namespace, created_at)",
    "CREATE INDEX timers_execute ON timers (namespace, execute_at, timer_uuid)",
)
INSERT_VALUES = "INSERT INTO timers VALUES (?, ?, ?, ?, ?, ?, ?)"
INSERT_ARRAYS = """
    INSERT INTO timers SELECT * FROM unnest(
        $1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bytea[])
"""

Row = tuple[str, str, int, int, str, str, bytes]


class Inserts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows to insert, with random keys and random due instants, a batch a commit: into PostgreSQL
    with a `url`, else into the new `file`."""

    file: str
    url: str | None
    warm_up: int
    count: int
    batch: int
    instants: RandomInstants


class InsertLimit(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    batch: int
    seconds: float
    per_second: float


class Table(Protocol):
    def insert(self, rows: list[Row]) -> None:
        """All of them in one transaction, on disk when it returns."""


class SqliteTable:
    """A table with the service's indexes, cache and rare checkpoints: SQLite's defaults are slower,
    and a limit should not be easy to beat."""

    def __init__(self, file: Path) -> None:
        self._connection = apsw.Connection(str(file))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.pragma("cache_size", -WRITER_CACHE_KIB)
        self._connection.pragma("wal_autocheckpoint", LOG_PAGES_BEFORE_CHECKPOINT)
        for statement in (TABLE.format(blob="BLOB"), *SQLITE_INDEXES):
            self._connection.execute(statement)

    def insert(self, rows: list[Row]) -> None:
        with self._connection:
            self._connection.executemany(INSERT_VALUES, rows)

    def close(self) -> None:
        self._connection.close()


class PostgresTable:
    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._connection: Any = self._runner.run(
            asyncpg.connect(url, server_settings={"search_path": SCHEMA})
        )
        self._execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        for statement in (f"CREATE SCHEMA {SCHEMA}", TABLE.format(blob="BYTEA"), DUE_INDEX):
            self._execute(statement)

    def insert(self, rows: list[Row]) -> None:
        self._execute(INSERT_ARRAYS, *map(list, zip(*rows, strict=True)))

    def close(self) -> None:
        self._execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        self._runner.run(self._connection.close())
        self._runner.close()

    def _execute(self, statement: str, *values: object) -> None:
        self._runner.run(self._connection.execute(statement, *values))


@contextmanager
def open_table(inserts: Inserts) -> Iterator[Table]:
    file = Path(inserts.file)
    table = SqliteTable(file) if inserts.url is None else PostgresTable(inserts.url)
    try:
        yield table
    finally:
        table.close()
        file.unlink(missing_ok=True)


def insert_all(inserts: Inserts) -> InsertLimit:
    with open_table(inserts) as table:
        insert_rows(table, inserts, inserts.warm_up)
        seconds = insert_rows(table, inserts, inserts.count)
    return InsertLimit(
        count=inserts.count,
        batch=inserts.batch,
        seconds=round(seconds, 4),
        per_second=round(inserts.count / seconds, 1),
    )


def insert_rows(table: Table, inserts: Inserts, count: int) -> float:
    """Seconds that the inserts took. Rows are made between the stretches that are timed."""
    seconds = 0.0
    for first in range(0, count, STRETCH):
        rows = [
            row_of(number, inserts.instants) for number in range(first, min(first + STRETCH, count))
        ]
        started = time.perf_counter()
        for start in range(0, len(rows), inserts.batch):
            table.insert(rows[start : start + inserts.batch])
        seconds += time.perf_counter() - started
    return seconds


def row_of(number: int, instants: RandomInstants) -> Row:
    due_us = instants.due_us(number)
    payload = payload_text(number, due_us, PAYLOAD_BYTES)
    created_at = instants.earliest_us
    return ("default", random_id(), due_us, created_at, CALLBACK_URL, payload, os.urandom(16))


def measure_inserts(
    store: StoreUnderTest,
    instants: RandomInstants,
    *,
    warm_up: int,
    count: int,
    batch: int,
    sqlite_batch: int,
) -> InsertLimit:
    """Called in the parent: insert in a process of its own.

    The SQLite store joins waiting batches in one transaction; `sqlite_batch` is the usual size.
    """
    settings: Mapping[str, str] = store.settings
    url = settings["DATABASE_URL"] if "PG_SCHEMA" in settings else None
    inserts = Inserts(
        file=str(store.directory / "limit.db"),
        url=url,
        warm_up=warm_up,
        count=count,
        batch=sqlite_batch if url is None else batch,
        instants=instants,
    )
    with Child("bench.limits.inserts") as child:
        return child.ask(inserts, InsertLimit, TIMEOUT_SECONDS)


def main() -> None:
    inserts = msgspec.json.decode(sys.stdin.buffer.readline(), type=Inserts)
    answer_parent(insert_all(inserts))


if __name__ == "__main__":
    main()
