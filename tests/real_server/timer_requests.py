"""Requests of the platform API that many tests make."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx

from duetime.clock import SystemClock
from duetime.domain.instants import Instant, format_instant, plus_ms
from tests.polling import poll
from tests.real_server.api_connection import ApiConnection
from tests.real_server.server_process import ServerProcess

STATUSES = ("pending", "executing", "completed", "failed", "canceled")

Json = dict[str, Any]


def now() -> Instant:
    return SystemClock().now()


def in_ms(delay_ms: float) -> Instant:
    return plus_ms(now(), delay_ms)


def timer_body(url: str, execute_at: Instant, *, callback: Json | None = None, **more: Any) -> Json:
    """A create request for an HTTP callback; `callback` adds headers or a payload."""
    return {
        "execute_at": format_instant(execute_at),
        "callback": {"type": "http", "url": url, **(callback or {})},
        **more,
    }


async def post_create(
    api: httpx.AsyncClient, path: str, body: Json, *, instant: str = "execute_at"
) -> httpx.Response:
    """Create a timer. If its instant passes before the server of a busy machine sees the request,
    the timer is due a little later."""
    answer = await api.post(path, json=body)
    if f"{instant} must be in the future" in answer.text:
        answer = await api.post(path, json={**body, instant: format_instant(in_ms(2_000))})
    return answer


async def create_timer(
    api: httpx.AsyncClient,
    url: str,
    execute_at: Instant,
    *,
    callback: Json | None = None,
    **more: Any,
) -> str:
    """The id of a new timer."""
    body = timer_body(url, execute_at, callback=callback, **more)
    answer = await post_create(api, "/timers", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def create_soon(api: httpx.AsyncClient, url: str, **more: Any) -> str:
    """The id of a new timer that is due in a moment."""
    return await create_timer(api, url, in_ms(20), **more)


async def get_timer(api: httpx.AsyncClient, timer_id: str) -> Json:
    answer = await api.get(f"/timers/{timer_id}")
    assert answer.status_code == 200, answer.text
    data: Json = answer.json()["data"]
    return data


async def wait_for_status(api: httpx.AsyncClient, timer_id: str, *statuses: str) -> Json:
    """The timer, once it has one of the statuses."""
    return await poll(lambda: get_timer(api, timer_id), lambda timer: timer["status"] in statuses)


async def count_timers(api: httpx.AsyncClient) -> dict[str, int]:
    """How many timers the API lists in each status."""
    counts = {}
    for status in STATUSES:
        answer = await api.get("/timers", params={"status": status, "limit": 1})
        assert answer.status_code == 200, answer.text
        counts[status] = int(answer.json()["data"]["total"])
    return counts


async def wait_until_dry(api: httpx.AsyncClient) -> dict[str, int]:
    """How many timers have each status, once none is pending or executing."""
    return await poll(
        lambda: count_timers(api), lambda counts: counts["pending"] == counts["executing"] == 0
    )


@asynccontextmanager
async def connections_to(server: ServerProcess, count: int) -> AsyncIterator[list[ApiConnection]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(ApiConnection(server.url)) for _ in range(count)]
