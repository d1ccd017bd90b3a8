"""The stores that can be measured, and where each measurement finds a new one."""

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from bench.disk import check_room, disk_bytes
from bench.postgres_host import PostgresHost, open_host
from bench.postgres_site import PostgresSite
from bench.scale import StoreName
from bench.server import LOG_NAME
from bench.site import Site
from bench.sqlite_site import SqliteSite


class Stores(NamedTuple):
    """`new_site` makes a store that is empty, and takes a label for its logs."""

    version: str
    host: PostgresHost | None
    new_site: Callable[[str], AbstractContextManager[Site]]


@contextmanager
def open_stores(
    name: StoreName, timers: int, output: Path, settings: Mapping[str, str]
) -> Iterator[Stores]:
    """`timers` is how many the largest of them will get."""
    if name is StoreName.SQLITE:
        check_room(output, disk_bytes(name, timers))
        yield Stores(
            f"SQLite {apsw.sqlite_lib_version()}", None, lambda label: sqlite_site(output, label)
        )
        return
    with open_host(output, disk_bytes(name, timers), settings) as host:
        yield Stores(
            f"PostgreSQL {host.facts.version}",
            host,
            lambda label: postgres_site(output, host, label),
        )


@contextmanager
def sqlite_site(output: Path, label: str) -> Iterator[SqliteSite]:
    with working_directory(output, label) as directory:
        yield SqliteSite(directory)


@contextmanager
def postgres_site(output: Path, host: PostgresHost, label: str) -> Iterator[PostgresSite]:
    with working_directory(output, label) as directory:
        site = PostgresSite(directory, host, f"bench_{label}_{secrets.token_hex(4)}")
        try:
            yield site
        finally:
            site.close()


@contextmanager
def working_directory(output: Path, label: str) -> Iterator[Path]:
    """A directory beside the results, on the disk that is measured; gone with the run.

    What the server logged, warnings and errors only, stays.
    """
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=output))
    try:
        yield directory
    finally:
        log = directory / LOG_NAME
        if log.exists() and log.stat().st_size:
            log.replace(output / f"server-{label}.log")
        shutil.rmtree(directory)
