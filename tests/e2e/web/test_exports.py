"""Exports that cannot go on."""

import httpx
import pytest

from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = pytest.mark.e2e

TIMERS_AT_ONCE = 20
PAYLOAD = "x" * 60_000
"""Hundreds of these are more than the buffers between the server and a client take."""


@pytest.mark.parametrize("suffix", ["csv", "ndjson"])
async def test_an_export_that_is_broken_off_is_an_error_for_the_client(
    server: ServerProcess, suffix: str
) -> None:
    due_at = in_ms(3_600_000)
    async with server.client() as api:
        for start in range(0, 400, TIMERS_AT_ONCE):
            timers = [
                v1_body(f"t{number}", "http://example.com/", due_at) | {"payload": PAYLOAD}
                for number in range(start, start + TIMERS_AT_ONCE)
            ]
            added = await api.post(f"{TIMERS}/batch", json={"timers": timers})
            assert added.status_code == 200, added.text
        key = {"name": "exporter", "roles": ["read"], "namespaces": ["*"]}
        made = (await api.post("/api/v1/keys", json=key)).json()
        path = f"{server.url}/ui/timers/export?format={suffix}"
        async with (
            httpx.AsyncClient(headers={"x-api-key": made["key"]}) as client,
            client.stream("GET", path) as answer,
        ):
            assert answer.status_code == 200
            content = answer.aiter_raw()
            await anext(content)
            assert (await api.delete(f"/api/v1/keys/{made['id']}")).status_code == 204
            with pytest.raises(httpx.RemoteProtocolError):
                async for _ in content:
                    pass
