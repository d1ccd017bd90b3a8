"""Opens the stores under test: a new, empty one for each measurement."""

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from bench.harness.server import LOG_NAME
from bench.scale import StoreName
from bench.stores.disk_space import check_room, disk_bytes
from bench.stores.postgres import PostgresSchema
from bench.stores.postgres_server import PostgresHost, open_host
from bench.stores.sqlite import SqliteFile
from bench.stores.store_under_test import StoreUnderTest


class Stores(NamedTuple):
    """`new_store` opens an empty store; its argument labels the server's log."""

    version: str
    host: PostgresHost | None
    new_store: Callable[[str], AbstractContextManager[StoreUnderTest]]


@contextmanager
def open_stores(
    name: StoreName, timers: int, output: Path, settings: Mapping[str, str]
) -> Iterator[Stores]:
    """`timers` is the number of timers in the largest store."""
    if name is StoreName.SQLITE:
        check_room(output, disk_bytes(name, timers))
        yield Stores(
            f"SQLite {apsw.sqlite_lib_version()}", None, lambda label: open_sqlite(output, label)
        )
        return
    with open_host(output, disk_bytes(name, timers), settings) as host:
        yield Stores(
            f"PostgreSQL {host.facts.version}",
            host,
            lambda label: open_postgres(output, host, label),
        )


@contextmanager
def open_sqlite(output: Path, label: str) -> Iterator[SqliteFile]:
    with working_directory(output, label) as directory:
        yield SqliteFile(directory)


@contextmanager
def open_postgres(output: Path, host: PostgresHost, label: str) -> Iterator[PostgresSchema]:
    with working_directory(output, label) as directory:
        store = PostgresSchema(directory, host, f"bench_{label}_{secrets.token_hex(4)}")
        try:
            yield store
        finally:
            store.close()


@contextmanager
def working_directory(output: Path, label: str) -> Iterator[Path]:
    """A temporary directory beside the results, on the disk under test.

    The server's log, which has warnings and errors only, is kept unless it is empty.
    """
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=output))
    try:
        yield directory
    finally:
        log = directory / LOG_NAME
        if log.exists() and log.stat().st_size:
            log.replace(output / f"server-{label}.log")
        shutil.rmtree(directory)
