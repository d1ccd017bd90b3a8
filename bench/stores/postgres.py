"""PostgreSQL under test: a new schema for each store."""

import time
from collections.abc import Mapping
from pathlib import Path

from bench.harness.progress import Steps
from bench.harness.server import Server
from bench.stores.postgres_preload import Filling, fill_tables
from bench.stores.postgres_queries import Queries
from bench.stores.postgres_server import PostgresHost
from bench.stores.store_under_test import Lists, Tally
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.stores.postgres.connections import PLANS_BY_INDEX

COUNT_PENDING = """
    SELECT /* bench */ count(*) FROM pending_timers WHERE namespace = $1 AND created_at >= $2
"""
# Finished timers are counted only when nothing is executing: polling stays cheap.
COUNT_COMPLETED = """
    SELECT /* bench */ CASE WHEN EXISTS (SELECT FROM executing_timers) THEN 0 ELSE (
        SELECT count(*) FROM finished_timers
        WHERE namespace = $1 AND status = 2 AND created_at >= $2 AND updated_at >= $2) END
"""
COUNT_STORED = """
    SELECT /* bench */ (SELECT count(*) FROM pending_timers), (SELECT count(*) FROM finished_timers)
"""


class PostgresSchema:
    def __init__(self, directory: Path, host: PostgresHost, schema: str) -> None:
        self.directory = directory
        self.host = host
        self.schema = schema
        self.settings: Mapping[str, str] = {"DATABASE_URL": host.url, "PG_SCHEMA": schema}
        # The counts match few rows, but the planner has no statistics of a fresh table.
        self._queries = Queries(host.url, {"search_path": schema, **PLANS_BY_INDEX})

    def tally(self, lists: Lists) -> Tally:
        return TableTally(self._queries)

    def fill(self, stored: int, steps: Steps, *, analyze: bool) -> None:
        # The server creates the tables.
        with Server(self):
            pass
        with Queries(self.host.url, {"search_path": self.schema}) as queries:
            pending, finished = queries.rows(COUNT_STORED)[0]
        fill_tables(
            Filling(
                url=self.host.url,
                schema=self.schema,
                pending=max(0, stored - pending),
                finished=max(0, stored - finished),
                analyze=analyze,
            ),
            steps,
        )
        with steps.step("  checkpoint"):
            self.host.checkpoint()

    def close(self) -> None:
        """Drop the schema from a given server. A server of our own disappears with its files."""
        if not self.host.facts.ours:
            self._queries.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        self._queries.close()


class TableTally:
    """A tally from the tables: the server's counts of large lists are estimates."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._made_at_us = time.time_ns() // 1_000

    def pending(self) -> int:
        return self._count(COUNT_PENDING)

    def completed(self) -> int:
        return self._count(COUNT_COMPLETED)

    def _count(self, query: str) -> int:
        count: int = self._queries.value(query, DEFAULT_NAMESPACE, self._made_at_us)
        return count
