"""A shop that uses Duetime: what the pages of the Web UI show in their pictures."""

import math
import random
from collections.abc import Awaitable
from typing import Any

import httpx

from docs.site.tunnel_receiver import TunnelReceiver
from duetime.clock import SystemClock
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, format_instant
from tests.brokers.bus_client import Command, schedule_timer
from tests.brokers.nats_bus_client import NatsBusClient
from tests.real_server.callback_receiver import Answer

FAILING = "mail.shop.example"
PAUSED = "http://partner.example.net"
HOSTS = {
    "hooks.shop.example": 0.012,
    "billing.shop.example": 0.045,
    "crm.example.com": 0.160,
}
"""Seconds that the endpoints take for an answer."""

KINDS = ("cart-expiry", "invoice-due", "trial-ends", "follow-up", "seat-hold")
BATCH = 1_000
RETRIES = {"maxRetries": 8, "initialInterval": "2s", "maxInterval": "30s"}


async def fill(
    api: httpx.AsyncClient, receiver: TunnelReceiver, bus_url: str, seconds: int
) -> None:
    """Leave timers of every kind, and return when the load of so many seconds has gone out."""
    for host, delay_seconds in HOSTS.items():
        answer = Answer(body=b'{"ok": true}', delay_seconds=delay_seconds)
        receiver.script_host(host, answer)
    busy = Answer(status=503, body=b"mail queue is full, try again later")
    receiver.script_host(FAILING, busy)
    for name in ("sales", "support"):
        await _succeed(api.put(f"/api/v1/namespaces/{name}", json={"numShards": 8}))
    pause = {"endpoint": PAUSED, "reason": "partner deploys until 15:00"}
    await _succeed(api.post("/api/v1/endpoints/pause", json=pause))
    key = {"name": "sales-backend", "roles": ["read", "write"], "namespaces": ["sales"]}
    secret = (await _succeed(api.post("/api/v1/keys", json=key))).json()["key"]
    await _succeed(
        api.post(
            "/api/v1/keys", json={"name": "dashboards", "roles": ["read"], "namespaces": ["*"]}
        )
    )
    await _create(api, _load(seconds))
    await _create(api, _later())
    cancel = {"action": "cancel", "namespace": "support", "filter": {"idPrefix": "follow-up-9"}}
    await _succeed(api.post("/api/v1/operations", json=cancel))
    await _use_key(api, secret)
    await _use_bus(bus_url)
    await SystemClock().sleep(seconds + 1)


def _now() -> Instant:
    return SystemClock().now()


def _load(seconds: int) -> list[dict[str, Any]]:
    """Timers that fall due within the next seconds: a wave, of which a part goes wrong."""
    chance = random.Random(7)
    start = _now() + 3 * MICROSECONDS_PER_SECOND
    timers = []
    for second in range(seconds):
        count = round(34 + 16 * math.sin(second / 17) + chance.uniform(-5, 5))
        for number in range(count):
            host = chance.choices([*HOSTS, FAILING, "partner.example.net"], [62, 26, 9, 2, 1])[0]
            due_at = start + second * MICROSECONDS_PER_SECOND + chance.randrange(1_000_000)
            timers.append(_timer(chance, f"{second:03d}{number:02d}", host, Instant(due_at)))
    return timers


def _later() -> list[dict[str, Any]]:
    """Timers of the next hours and days, more of them in the near future."""
    chance = random.Random(11)
    timers = []
    for number in range(2_400):
        seconds = chance.choice([3_300, 3_300, 80_000, 600_000]) * chance.random() ** 0.8 + 120
        due_at = Instant(_now() + round(seconds * MICROSECONDS_PER_SECOND))
        timers.append(_timer(chance, f"9{number:04d}", chance.choice([*HOSTS]), due_at))
    return timers


def _timer(chance: random.Random, number: str, host: str, due_at: Instant) -> dict[str, Any]:
    kind = chance.choice(KINDS)
    customer = chance.randrange(1_000, 9_999)
    return {
        "namespace": "support" if kind == "follow-up" else "sales",
        "id": f"{kind}-{number}",
        "executeAt": format_instant(due_at),
        "callbackUrl": f"http://{host}/timers/{kind}",
        "payload": {"customer": customer, "plan": chance.choice(["team", "business"])},
        "metadata": {"customer": str(customer)},
        "retryPolicy": RETRIES if host == FAILING else {"maxRetries": 3},
    }


async def _create(api: httpx.AsyncClient, timers: list[dict[str, Any]]) -> None:
    for begin in range(0, len(timers), BATCH):
        batch = {"timers": timers[begin : begin + BATCH]}
        await _succeed(api.post("/api/v1/timers/batch", json=batch))


async def _use_key(api: httpx.AsyncClient, secret: str) -> None:
    """Leave traces of another key than our own in the audit log."""
    headers = {"X-API-Key": secret}
    for number in range(6):
        body = {
            "namespace": "sales",
            "id": f"renewal-{number}",
            "executeIn": f"{number + 1}d",
            "callbackUrl": "http://hooks.shop.example/timers/renewal",
        }
        await _succeed(api.post("/api/v1/timers", json=body, headers=headers))
    for number in (1, 4):
        path = f"/api/v1/timers/sales/renewal-{number}/cancel"
        await _succeed(api.post(path, headers=headers))
    pause = {"endpoint": "http://crm.example.com"}
    await api.post("/api/v1/endpoints/pause", json=pause, headers=headers)


async def _use_bus(url: str) -> None:
    async with NatsBusClient(url) as bus:
        calls = [
            schedule_timer(
                f"call-{number}",
                Instant(_now() + (1 if number % 3 else number * 15) * MICROSECONDS_PER_SECOND),
                tenant="calls",
            )
            for number in range(240)
        ]
        await bus.send(calls)
        await bus.send([Command(str(number), text) for number, text in enumerate(_WRONG)])
        await bus.book.wait_for_total(161)


_WRONG = (
    b'{"id": "0190", "type": "ScheduleTimer", "tenantId": "calls"}',
    b"ScheduleTimer call-7 at noon",
    b'{"id": "0191", "type": "DeleteEverything", "tenantId": "calls", "payload": {}}',
)


async def _succeed(request: Awaitable[httpx.Response]) -> httpx.Response:
    answer = await request
    assert answer.is_success, answer.text
    return answer
