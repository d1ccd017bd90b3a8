"""Bulk operations whose server is killed while they run."""

import httpx

from tests.effort import scaled
from tests.polling import poll
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import Json

OPERATIONS = "/api/v1/operations"
KILLS = scaled(2)


async def kill_during(server: ServerProcess, id: str, *, every: int) -> None:
    """Kill the server each time the operation has scanned so many timers more, and start it
    again."""
    for kill in range(KILLS):
        async with server.client() as api:
            await _wait_until(api, id, scanned_over=kill * every)
        await server.kill()
        await server.start()


async def end_of(api: httpx.AsyncClient, id: str) -> Json:
    """The operation once it has ended."""
    return await _wait_until(api, id)


async def _wait_until(api: httpx.AsyncClient, id: str, scanned_over: float = float("inf")) -> Json:
    """The operation once it has scanned more timers, or has ended."""

    async def operation() -> Json:
        answer = await api.get(f"{OPERATIONS}/{id}")
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    return await poll(
        operation, lambda found: found["scanned"] > scanned_over or found["status"] != "running"
    )
