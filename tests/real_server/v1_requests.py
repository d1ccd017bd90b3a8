"""Requests of the v1 API that many tests make."""

from typing import Any
from urllib.parse import quote

import httpx

from duetime.domain.instants import Instant, format_instant
from tests.polling import poll
from tests.real_server.timer_requests import post_create

Json = dict[str, Any]

TIMERS = "/api/v1/timers"
QUICK_RETRIES = {"maxRetries": 5, "initialInterval": "50ms", "maxInterval": "200ms"}


def v1_body(id: str, url: str, execute_at: Instant, **more: Any) -> Json:
    return {"id": id, "executeAt": format_instant(execute_at), "callbackUrl": url, **more}


def v1_path(id: str, namespace: str = "default") -> str:
    return f"{TIMERS}/{quote(namespace, safe='')}/{quote(id, safe='')}"


async def create_v1(
    api: httpx.AsyncClient, id: str, url: str, execute_at: Instant, **more: Any
) -> Json:
    body = v1_body(id, url, execute_at, **more)
    answer = await post_create(api, TIMERS, body, instant="executeAt")
    assert answer.status_code == 200, answer.text
    timer: Json = answer.json()
    return timer


async def get_v1(api: httpx.AsyncClient, id: str, namespace: str = "default") -> Json:
    answer = await api.get(v1_path(id, namespace))
    assert answer.status_code == 200, answer.text
    timer: Json = answer.json()
    return timer


async def wait_for_v1(
    api: httpx.AsyncClient, id: str, *statuses: str, namespace: str = "default"
) -> Json:
    """The timer, once it has one of the statuses."""
    return await poll(lambda: get_v1(api, id, namespace), lambda timer: timer["status"] in statuses)
