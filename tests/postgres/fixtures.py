"""Fixtures for tests that need PostgreSQL. A run whose tests need none starts none."""

import asyncio
import os
import secrets
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import asyncpg
import pytest

from tests.postgres.binaries import OLDEST_VERSION, find_binaries
from tests.postgres.server import PostgresServer
from tests.postgres.servers import Servers, TestRun

ValueT = TypeVar("ValueT")

ANSWER_SECONDS = 10
DROP_SECONDS = 30

_RUN = pytest.StashKey[TestRun]()
_SERVERS = pytest.StashKey[Servers]()
_WORKER_INPUT = "duetime_postgres_directory"


class MakePostgres(Protocol):
    def __call__(
        self,
        *,
        durable: bool = False,
        primary: PostgresServer | None = None,
        slot: str | None = None,
    ) -> PostgresServer: ...


def pytest_configure(config: pytest.Config) -> None:
    worker_input: dict[str, str] | None = getattr(config, "workerinput", None)
    if worker_input is not None:
        directory = Path(worker_input[_WORKER_INPUT])
    else:
        run = config.stash[_RUN] = TestRun()
        directory = run.directory
    config.stash[_SERVERS] = Servers(directory)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called before a worker starts, in the process that controls it."""
    node.workerinput[_WORKER_INPUT] = str(node.config.stash[_RUN].directory)


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash.get(_RUN, None)
    if run is not None:
        run.end()


@pytest.fixture(scope="session")
def postgres_url(pytestconfig: pytest.Config) -> str:
    """A server that all tests of the run share; each test uses its own schema or an emptied one.

    `DUETIME_TEST_POSTGRES_URL` names the server. Otherwise one is started from the programs on this
    machine, or from those of a development dependency. Without either, tests that need one are
    skipped; where the variable CI is set, they fail.
    """
    given = os.environ.get("DUETIME_TEST_POSTGRES_URL")
    if given:
        _check(given)
        return given
    _skip_if_missing()
    return pytestconfig.stash[_SERVERS].shared_url()


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that does not exist yet; after the test it is dropped."""
    with dropped_schema(postgres_url) as schema:
        yield schema


@contextmanager
def dropped_schema(postgres_url: str) -> Iterator[str]:
    """The name of a new schema, which is dropped at the end."""
    schema = f"test_{secrets.token_hex(8)}"
    yield schema
    drop_schema(postgres_url, schema)


def drop_schema(url: str, schema: str) -> None:
    _execute(
        url,
        f"SET lock_timeout = '{DROP_SECONDS}s'; SET client_min_messages = warning; "
        f"DROP SCHEMA IF EXISTS {schema} CASCADE",
    )


@pytest.fixture
def make_postgres(pytestconfig: pytest.Config) -> MakePostgres:
    """Makes a server for this test only, which may stop, crash and restart it.

    >>> with make_postgres(durable=True) as server:
    ...     server.restart("immediate")
    """
    _skip_if_missing()
    return pytestconfig.stash[_SERVERS].make


def _skip_if_missing() -> None:
    if find_binaries() is None:
        missing = "PostgreSQL 15 or newer is missing: make install brings one"
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


def _check(url: str) -> None:
    version, problem = 0, ""
    try:
        version = int(_fetch_value(url, "SHOW server_version_num"))
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        problem = repr(error)
    if problem:
        pytest.fail(f"DUETIME_TEST_POSTGRES_URL does not answer: {problem}", pytrace=False)
    if version < OLDEST_VERSION * 10_000:
        pytest.fail(
            f"DUETIME_TEST_POSTGRES_URL is PostgreSQL {version // 10_000}; "
            f"{OLDEST_VERSION} is the oldest that will do",
            pytrace=False,
        )


def _execute(url: str, statements: str) -> None:
    async def execute() -> None:
        connection = await asyncpg.connect(url, timeout=ANSWER_SECONDS)
        try:
            await connection.execute(statements)
        finally:
            await connection.close()

    _in_a_loop_of_its_own(execute)


def _fetch_value(url: str, query: str) -> str:
    async def fetch() -> str:
        connection = await asyncpg.connect(url, timeout=ANSWER_SECONDS)
        try:
            return str(await connection.fetchval(query))
        finally:
            await connection.close()

    return _in_a_loop_of_its_own(fetch)


def _in_a_loop_of_its_own(work: Callable[[], Coroutine[None, None, ValueT]]) -> ValueT:
    """Run the work in another thread: tests with and without an event loop use these fixtures."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work())).result()
