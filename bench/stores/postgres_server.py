"""The PostgreSQL server under test: started for the run, or given by its URL.

A server started for the run flushes every commit, as in production, and is removed with the run.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncpg
import msgspec
import psutil

from bench.harness.process_usage import cpu_seconds, family, proportional_mb
from bench.stores.disk_space import MachineUnfit, check_room
from bench.stores.postgres_queries import Queries
from tests.postgres.binaries import OLDEST_VERSION, find_binaries
from tests.postgres.server import PostgresServer
from tests.postgres.servers import Servers, TestRun

GIVEN_URL = "DUETIME_TEST_POSTGRES_URL"
STATEMENT_STATISTICS = "pg_stat_statements"
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
IN_MEMORY = {"tmpfs", "ramfs"}

# Settings that initdb writes, and where the server listens and logs.
UNREMARKABLE = (
    "^(application_name|config_file|data_.*|.*_file|default_text_search_config|client_encoding"
    "|dynamic_shared_memory_type|lc_.*|log_.*|listen_addresses|port|unix_socket_.*|.*timezone"
    "|datestyle|search_path)$"
)

SETTINGS: Mapping[str, str] = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
}
"""Settings in which our own server differs from PostgreSQL's defaults."""


class PostgresFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`changed` holds the settings that differ from PostgreSQL's defaults."""

    version: str
    ours: bool
    durable: dict[str, str]
    changed: dict[str, str]


class PostgresHost:
    """`pid` is the server's first process, or None for a given server."""

    def __init__(self, url: str, pid: int | None) -> None:
        self.url = url
        self._watched = psutil.Process(pid) if pid else None
        with Queries(url) as queries:
            self.facts = facts_of(queries, ours=pid is not None)
            self.has_statement_statistics = prepare_statistics(queries)

    def checkpoint(self) -> None:
        """Request a checkpoint. Without the privilege, the server's own schedule applies."""
        with Queries(self.url) as queries, suppress(asyncpg.InsufficientPrivilegeError):
            queries.execute("CHECKPOINT")

    def memory_mb(self) -> float | None:
        return proportional_mb(family(self._watched)) if self._watched else None

    def cpu_seconds(self) -> float | None:
        return cpu_seconds(family(self._watched)) if self._watched else None


def facts_of(queries: Queries, *, ours: bool) -> PostgresFacts:
    changed = queries.rows(
        "SELECT name, current_setting(name) AS value FROM pg_settings"
        " WHERE source NOT IN ('default', 'client', 'session') AND setting <> boot_val"
        " AND context <> 'internal' AND lower(name) !~ $1 ORDER BY name",
        UNREMARKABLE,
    )
    return PostgresFacts(
        version=queries.value("SHOW server_version").partition(" ")[0],
        ours=ours,
        durable={name: queries.value(f"SHOW {name}") for name in DURABLE},
        changed={row["name"]: row["value"] for row in changed},
    )


def prepare_statistics(queries: Queries) -> bool:
    """Whether the server keeps statistics of statements that we may read."""
    try:
        queries.execute(f"CREATE EXTENSION IF NOT EXISTS {STATEMENT_STATISTICS}")
        queries.execute(f"SELECT {STATEMENT_STATISTICS}_reset()")
    except asyncpg.PostgresError:
        return False
    return True


@contextmanager
def open_host(
    place: Path, bytes_needed: int, settings: Mapping[str, str]
) -> Iterator[PostgresHost]:
    given = os.environ.get(GIVEN_URL)
    if given:
        yield PostgresHost(given, pid=None)
        return
    if find_binaries() is None:
        raise MachineUnfit(
            f"PostgreSQL {OLDEST_VERSION} or newer is missing: run make install, or set"
            f" {GIVEN_URL} to the URL of a server"
        )
    run = start_run(place)
    try:
        check_disk(run.directory, bytes_needed)
        with Servers(run.directory).make(durable=True) as server:
            adjust(server, {**SETTINGS, **settings})
            yield PostgresHost(server.url, server.pid)
    finally:
        run.end()


def start_run(place: Path) -> TestRun:
    """The directory of a run, at `place` if PostgreSQL can work there."""
    before = tempfile.tempdir
    tempfile.tempdir = str(place)
    try:
        return TestRun()
    finally:
        tempfile.tempdir = before


def check_disk(directory: Path, bytes_needed: int) -> None:
    mounts = {Path(each.mountpoint): each.fstype for each in psutil.disk_partitions(all=True)}
    kind = next((mounts[each] for each in directory.parents if each in mounts), "")
    if kind in IN_MEMORY:
        raise MachineUnfit(
            f"{directory} is in memory ({kind}), where commits cost nothing: choose a directory on"
            " a disk with --output"
        )
    check_room(directory, bytes_needed)


def adjust(server: PostgresServer, settings: Mapping[str, str]) -> None:
    with Queries(server.url) as queries:
        for name, value in settings.items():
            queries.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        available = queries.value(
            "SELECT true FROM pg_available_extensions WHERE name = $1", STATEMENT_STATISTICS
        )
        if available:
            queries.execute(f"ALTER SYSTEM SET shared_preload_libraries = {STATEMENT_STATISTICS}")
    server.restart()
