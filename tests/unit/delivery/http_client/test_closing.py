"""Closing the client while requests wait for a connection."""

import asyncio
from collections.abc import Sequence

import pytest

from duetime.delivery.http_client import Address, ClientClosed, HttpClient, parse_target
from duetime.delivery.http_client.client import CONNECTOR_GRACE_SECONDS
from duetime.testing import on_virtual_time


@on_virtual_time
async def test_a_request_that_times_out_in_the_same_moment_does_not_break_the_close() -> None:
    loop = asyncio.get_running_loop()

    async def hang(host: str, port: int, deadline: float) -> Sequence[Address]:
        await asyncio.Event().wait()
        return []

    client = HttpClient(resolve=hang)
    closes = asyncio.Event()
    # In the same turn of the loop as the end of the timeout, and just before it.
    loop.call_at(loop.time() + 1 + CONNECTOR_GRACE_SECONDS - 1e-10, closes.set)

    async def close() -> None:
        await closes.wait()
        await client.close()

    closing = asyncio.create_task(close())
    with pytest.raises(ClientClosed):
        await client.post(parse_target("http://silent.test/"), b"", None, 1.0)
    await closing
