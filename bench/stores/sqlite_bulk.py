"""Fills a SQLite file with more timers than the store's own API could in reasonable time.

SQL generates the rows, and the indexes are built afterwards. The content is what the store would
write; the order on disk is tidier.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from bench.harness.child import answer_parent
from bench.stores.postgres_preload import (
    CREATED_WITHIN_US,
    DUE_FROM_US,
    DUE_WITHIN_US,
    FINISHED_BEFORE_US,
    FINISHED_WITHIN_US,
    HOUR_US,
    attempt_at,
    chunks_of,
    encoded,
)
from bench.stores.sqlite_preload import CALLBACK, Loaded, Preload, preload_store
from duetime.domain.namespace import DEFAULT_NAMESPACE, DEFAULT_SHARDS

TABLES = ("timers", "live_timers", "finished_timers")
INDEX_SECONDS = 300.0
CACHE_KIB = 1_048_576

INDEXES = """
    SELECT name, sql FROM sqlite_master
    WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?
"""
# SQL cannot hash the id to its shard, so shards are numbered in turn: these timers are never
# claimed. Random values are materialized, because each mention would be evaluated anew.
INSERT_TIMERS = """
    WITH RECURSIVE numbers (number) AS (
        VALUES (:start) UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :end),
    made AS MATERIALIZED (SELECT number, lower(hex(randomblob(16))) AS chance FROM numbers)
    INSERT INTO timers (row_id, namespace, id, shard, timer_uuid, created_at, delivery_id, callback)
    SELECT number, :namespace,
           substr(chance, 1, 8) || '-' || substr(chance, 9, 4) || '-' || substr(chance, 13, 4)
               || '-' || substr(chance, 17, 4) || '-' || substr(chance, 21),
           number % :shards, randomblob(16),
           CAST(:created_from + (number - :first) * :step_us AS INTEGER), chance, :callback
    FROM made
"""
INSERT_LIVE = """
    WITH made AS MATERIALIZED (
        SELECT *, :due_from + abs(random() % :due_within) AS due_at FROM timers
        WHERE row_id >= :start AND row_id < :end)
    INSERT INTO live_timers (row_id, namespace, shard, timer_uuid, created_at, updated_at,
                             execute_at, due_at)
    SELECT row_id, namespace, shard, timer_uuid, created_at, created_at, due_at, due_at
    FROM made
"""
# One timer in twenty has failed, one in fifty was canceled. All finished an hour after creation.
INSERT_FINISHED = f"""
    INSERT INTO finished_timers (row_id, namespace, timer_uuid, created_at, updated_at, execute_at,
                                 due_at, status, attempt, failures, claim_number, epoch,
                                 executed_at, attempts, last_error)
    SELECT row_id, namespace, timer_uuid, created_at, finished_at, finished_at - 2000,
           finished_at - 2000, status, 1, 0, 1, 0, CASE WHEN status = 2 THEN finished_at END,
           :attempts, CASE WHEN status = 3 THEN 'HTTP 503' END
    FROM (SELECT *, created_at + {HOUR_US} AS finished_at,
                 CASE WHEN row_id % 20 = 3 THEN 3 WHEN row_id % 50 = 7 THEN 4 ELSE 2 END AS status
          FROM timers WHERE row_id >= :start AND row_id < :end)
"""
COUNT = """
    INSERT OR REPLACE INTO counts (namespace, status, count)
    SELECT namespace, status, count(*) FROM {table} GROUP BY namespace, status
"""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Timers of one state, created at even steps from an instant."""

    first: int
    count: int
    created_from: int
    created_within: int
    insert_state: str
    values: dict[str, Any]
    """Parameters of `insert_state`."""


def fill(preload: Preload) -> None:
    """Fill the tables, which exist and are empty."""
    connection = apsw.Connection(preload.path)
    # After a crash the file is thrown away, so durability is off.
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -CACHE_KIB)
    connection.pragma("threads", 2)
    indexes = drop_indexes(connection)
    for part in parts_of(preload, time.time_ns() // 1_000):
        insert(connection, part)
    total = preload.pending + preload.finished
    for statement in indexes:
        connection.execute(statement)
        # A sign of life; the total is reported at the end.
        answer_parent(Loaded(total - 1))
    for table in TABLES[1:]:
        connection.execute(COUNT.format(table=table))
    connection.pragma("journal_mode", "wal")
    connection.close()
    answer_parent(Loaded(total))


def parts_of(preload: Preload, now_us: int) -> list[Part]:
    finished_from = now_us - FINISHED_WITHIN_US
    return [
        Part(
            first=1,
            count=preload.pending,
            created_from=now_us - CREATED_WITHIN_US,
            created_within=CREATED_WITHIN_US - HOUR_US,
            insert_state=INSERT_LIVE,
            values={"due_from": now_us + DUE_FROM_US, "due_within": DUE_WITHIN_US - DUE_FROM_US},
        ),
        Part(
            first=preload.pending + 1,
            count=preload.finished,
            created_from=finished_from - HOUR_US,
            created_within=FINISHED_WITHIN_US - FINISHED_BEFORE_US,
            insert_state=INSERT_FINISHED,
            values={"attempts": encoded([attempt_at(finished_from)])},
        ),
    ]


def drop_indexes(connection: apsw.Connection) -> list[str]:
    """Returns the statements that create the indexes again."""
    indexes = [row for table in TABLES for row in connection.execute(INDEXES, (table,)).fetchall()]
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    return [str(statement) for _, statement in indexes]


def insert(connection: apsw.Connection, part: Part) -> None:
    shared = {
        "first": part.first,
        "created_from": part.created_from,
        "step_us": part.created_within / part.count,
        "namespace": DEFAULT_NAMESPACE,
        "shards": DEFAULT_SHARDS,
        "callback": encoded(CALLBACK),
    }
    for start, end in chunks_of(part.count):
        bounds = {"start": part.first + start, "end": part.first + end}
        with connection:
            connection.execute(INSERT_TIMERS, {**bounds, **shared})
            connection.execute(part.insert_state, {**bounds, **part.values})
        # One less than stored: the parent stops at the total, which must wait for the indexes.
        answer_parent(Loaded(part.first + end - 2))


def fill_file(preload: Preload, tell: Callable[[int], None]) -> None:
    preload_store(preload, tell, module="bench.stores.sqlite_bulk", patience_seconds=INDEX_SECONDS)


def main() -> None:
    fill(msgspec.json.decode(sys.stdin.buffer.readline(), type=Preload))


if __name__ == "__main__":
    main()
