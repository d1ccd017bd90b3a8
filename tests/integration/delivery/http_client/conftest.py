"""A client for the tests."""

import ssl
from collections.abc import AsyncIterator

import pytest

from duetime.delivery.http_client import HttpClient


@pytest.fixture
async def client(ssl_context: ssl.SSLContext) -> AsyncIterator[HttpClient]:
    client = HttpClient(ssl_context=ssl_context, max_idle_seconds=60, stale_seconds=60)
    yield client
    await client.close()
