"""Connections that never send a byte take neither callbacks nor requests their descriptors."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.polling import poll
from tests.real_server.api_connection import ApiConnection
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_soon, wait_for_status

pytestmark = pytest.mark.e2e

DESCRIPTORS = 256


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
        assert [entry["event"] for entry in server.logs].count("api.connections_full") == 1
