"""Every asynchronous test here runs on asyncio's own loop and on uvloop."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import trustme
import uvloop

from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.testing.virtual_clock import VirtualClock


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def ssl_context() -> ssl.SSLContext:
    """Shared, because loading the system's authorities takes longer than most of these tests."""
    return ssl.create_default_context()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """For certificates."""
    return trustme.CA()


@pytest.fixture
async def destination(ssl_context: ssl.SSLContext) -> AsyncIterator[HttpDestination]:
    client = HttpClient(ssl_context=ssl_context, max_idle_seconds=60, stale_seconds=60)
    destination = HttpDestination(client, VirtualClock(), default_timeout_ms=5_000)
    yield destination
    await destination.close()
