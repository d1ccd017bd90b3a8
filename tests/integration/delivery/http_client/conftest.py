"""A client for the tests, and an authority for certificates."""

import ssl
from collections.abc import AsyncIterator

import pytest
import trustme

from duetime.delivery.http_client import HttpClient


@pytest.fixture
async def client(ssl_context: ssl.SSLContext) -> AsyncIterator[HttpClient]:
    client = HttpClient(ssl_context=ssl_context, max_idle_seconds=60, stale_seconds=60)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()
