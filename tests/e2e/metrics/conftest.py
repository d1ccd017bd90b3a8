"""A port for the metrics."""

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port that nobody else gets meanwhile: it is bound, and not listened on."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
