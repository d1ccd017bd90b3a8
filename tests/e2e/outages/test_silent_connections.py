"""Connections that are silent or slow take neither callbacks nor requests their descriptors."""

from contextlib import AsyncExitStack, suppress
from itertools import cycle
from pathlib import Path

import httpx
import pytest

from tests.polling import PATIENCE_SECONDS, poll
from tests.real_server.api_connection import ApiConnection, ConnectionEnded
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import create_soon, wait_for_status

pytestmark = pytest.mark.e2e

DESCRIPTORS = 256
KEY = f"Host: test\r\nX-API-Key: {API_KEY}\r\n"
SLOW_REQUESTS = {
    "silent": "",
    "slow head": "POST /timers HTTP/1.1\r\nHost: ",
    "slow body": f"POST /timers HTTP/1.1\r\n{KEY}Content-Length: 500\r\n\r\n{{",
    "open import": f"POST /api/v1/timers/import HTTP/1.1\r\n{KEY}Content-Length: 9\r\n\r\n",
    "unread answers": f"GET /openapi.json HTTP/1.1\r\n{KEY}\r\n" * 20,
}


async def test_silent_connections_keep_neither_timers_nor_requests_waiting(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    server = ServerProcess(tmp_path)
    server.open_files = DESCRIPTORS
    async with server, AsyncExitStack() as stack:
        api = await stack.enter_async_context(server.client())
        before = await create_soon(api, receiver.url)
        await wait_for_status(api, before, "completed")
        for _ in range(260):
            await stack.enter_async_context(ApiConnection(server.url))
        await server.wait_for_log("api.connections_full")
        timer_id = await create_soon(api, receiver.url)
        timer = await wait_for_status(api, timer_id, "completed", "failed")
        assert timer["status"] == "completed"
        newcomer = await stack.enter_async_context(server.client())
        assert (await newcomer.get("/healthz")).status_code == 200

        async def descriptors() -> int:
            return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))

        assert await poll(descriptors, lambda count: count < DESCRIPTORS / 2)
        (full,) = [entry for entry in server.logs if entry["event"] == "api.connections_full"]
        assert str(full["advice"]).startswith("look at this peer")


async def test_slow_connections_of_one_peer_stop_nobody_else(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    server = ServerProcess(tmp_path)
    server.open_files = DESCRIPTORS
    async with server, AsyncExitStack() as stack:
        for _, request in zip(range(300), cycle(SLOW_REQUESTS.values()), strict=False):
            slow = await stack.enter_async_context(ApiConnection(server.url))
            with suppress(ConnectionEnded):
                await slow.send(request.encode())
        await server.wait_for_log("api.connections_full")
        transport = httpx.AsyncHTTPTransport(
            local_address="127.0.0.2", limits=httpx.Limits(max_keepalive_connections=0)
        )
        other = httpx.AsyncClient(
            transport=transport,
            base_url=server.url,
            headers={"X-API-Key": API_KEY},
            timeout=PATIENCE_SECONDS,
        )
        await stack.enter_async_context(other)
        timers = [await create_soon(other, receiver.url) for _ in range(20)]
        for timer_id in timers:
            timer = await wait_for_status(other, timer_id, "completed", "failed")
            assert timer["status"] == "completed"
