"""Redis or Valkey servers for tests, started only when a test needs one.

`DUETIME_TEST_REDIS_URL` names a server to use, whose databases are emptied. Without a server
program, tests that need one are skipped; where the variable CI is set, they fail.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from tests.brokers.broker_process import skip_without
from tests.brokers.valkey_server import ValkeyServer, find_valkey

DATABASES = 16

MakeValkey = Callable[..., ValkeyServer]


@pytest.fixture(scope="session")
def shared_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that the tests of this process share."""
    given = os.environ.get("DUETIME_TEST_REDIS_URL")
    if given:
        yield f"{given.rstrip('/')}/{_worker_number() % DATABASES}"
        return
    program = _program()
    with ValkeyServer(program, tmp_path_factory.mktemp("valkey")) as server:
        yield server.url


@pytest.fixture
def redis_url(shared_redis_url: str) -> str:
    """An empty server. The test may leave data behind."""
    problem = ""
    try:
        with Redis.from_url(shared_redis_url) as client:
            client.flushdb()
    except RedisError as error:
        problem = repr(error)
    if problem:
        pytest.fail(f"the server for tests does not answer: {problem}", pytrace=False)
    return shared_redis_url


@pytest.fixture
def make_valkey(tmp_path: Path) -> Iterator[MakeValkey]:
    """Starts a server for this test alone, which may kill and restart it. The arguments go to its
    command line."""
    program = _program()
    with ExitStack() as servers:

        def make(*options: str) -> ValkeyServer:
            directory = tmp_path / f"valkey-{len(list(tmp_path.iterdir()))}"
            directory.mkdir()
            return servers.enter_context(ValkeyServer(program, directory, *options))

        yield make


def _program() -> Path:
    return skip_without(
        find_valkey(), "Valkey or Redis 6.2 or newer is missing: make install brings one"
    )


def _worker_number() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
