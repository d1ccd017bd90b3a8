"""Every asynchronous test here runs on asyncio's own loop and on uvloop."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import trustme
import uvloop

from duetime.delivery.http_client import HttpClient


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def ssl_context() -> ssl.SSLContext:
    """Made once: to load the system's authorities takes longer than most of these tests."""
    return ssl.create_default_context()


@pytest.fixture
async def client(ssl_context: ssl.SSLContext) -> AsyncIterator[HttpClient]:
    client = HttpClient(ssl_context=ssl_context, max_idle_seconds=60)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()
