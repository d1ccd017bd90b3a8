"""NATS servers for tests, started only when a test needs one.

Without `nats-server`, tests that need one are skipped; where the variable CI is set, they fail.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.brokers.broker_process import skip_without
from tests.brokers.nats_server import MISSING, NatsServer, find_nats_server


class MakeNats(Protocol):
    def __call__(self, *, configuration: str = "", jetstream: bool = True) -> NatsServer: ...


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
