"""NATS servers for tests, started only when a test needs one.

`DUETIME_TEST_NATS_URL` names a server for tests that accept any. Without `nats-server`, tests that
need one are skipped; where the variable CI is set, they fail.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.brokers.broker_process import skip_without
from tests.brokers.nats_server import MISSING, NatsServer, find_nats_server


class MakeNats(Protocol):
    def __call__(self, *, configuration: str = "", jetstream: bool = True) -> NatsServer: ...


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with JetStream that all tests of this process share. Each test uses subjects and
    streams of its own."""
    given = os.environ.get("DUETIME_TEST_NATS_URL")
    if given:
        yield given
        return
    skip_without(find_nats_server(), MISSING)
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server.url


@pytest.fixture
def make_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeNats]:
    """Starts a server for this test alone, which may stop, kill and restart it.

    >>> server = make_nats()
    ... server.kill()
    """
    skip_without(find_nats_server(), MISSING)
    with ExitStack() as servers:

        def make(*, configuration: str = "", jetstream: bool = True) -> NatsServer:
            directory: Path = tmp_path_factory.mktemp("nats")
            server = NatsServer(directory, configuration=configuration, jetstream=jetstream)
            return servers.enter_context(server)

        yield make
