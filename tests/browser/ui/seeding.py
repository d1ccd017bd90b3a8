"""A server with something on every page: timers of all statuses, keys, secrets and operations."""

from typing import Any, Protocol
from urllib.parse import quote

import httpx

from tests.real_server.callback_receiver import Answer
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, wait_for_v1

NAMESPACE = "orders"
FAILED = "invoice-reminder-7"
PENDING = "trial-ends/customer-1001"
COMPLETED = "welcome-mail-3"
CANCELED = "cart-reminder-2"
MINUTE_MS = 60_000
TWICE = {"maxRetries": 1, "initialInterval": "100ms", "maxInterval": "100ms"}


def page_of(timer_id: str, namespace: str = NAMESPACE) -> str:
    return f"/ui/timers/{quote(namespace, safe='')}/{quote(timer_id, safe='')}"


ABSENT = (page_of("no-such-timer"), "/ui/nothing-here")
PAGES = (
    *ABSENT,
    "/ui",
    "/ui?due=day",
    "/ui?due=week",
    "/ui/timers",
    f"/ui/timers?namespace={NAMESPACE}&status=failed&sort=-created_at",
    "/ui/timers?id_prefix=nothing-begins-so",
    page_of(PENDING),
    page_of(FAILED),
    page_of(COMPLETED),
    "/ui/create",
    "/ui/receiver",
    "/ui/operations",
    f"/ui/operations/new?namespace={NAMESPACE}&status=pending&action=cancel",
    f"/ui/operations/new?namespace={NAMESPACE}&id_prefix=renewal-&action=move",
    "/ui/operations/new?id_prefix=renewal-&action=run-now",
    f"/ui/operations/new?timer={NAMESPACE}/renewal-1&action=cancel",
    "/ui/endpoints",
    "/ui/namespaces",
    f"/ui/namespaces/{NAMESPACE}",
    f"/ui/namespaces/{NAMESPACE}/delete",
    "/ui/new-namespace",
    "/ui/cluster",
    "/ui/bus",
    "/ui/keys",
    "/ui/keys/new",
    "/ui/secrets",
    f"/ui/secrets/{NAMESPACE}",
    "/ui/audit",
)
"""Every page that a signed-in admin can open."""


class Receiver(Protocol):
    """Answers callbacks to `url` by script."""

    url: str

    def script(self, target: str, reaction: Answer, /) -> None: ...


async def seed(server: ServerProcess, receiver: Receiver) -> None:
    """Leave timers, a namespace, a key, a secret and an operation on the server."""
    async with server.client() as api:
        options = {
            "numShards": 8,
            "maxPending": 100_000,
            "retention": "30d",
            "slo": "99.9 % within 100ms over 30d",
        }
        answer = await api.put(f"/api/v1/namespaces/{NAMESPACE}", json=options)
        assert answer.is_success, answer.text
        receiver.script("/failing", Answer(status=503, body=b"try again tomorrow"))
        receiver.script("/welcome", Answer(body=b'{"ok": true}'))
        await _create(api, FAILED, f"{receiver.url}/failing", 50, retryPolicy=TWICE)
        await _create(api, COMPLETED, f"{receiver.url}/welcome", 50)
        await _create(api, CANCELED, f"{receiver.url}/cart", 90 * MINUTE_MS)
        await api.post(f"/api/v1/timers/{NAMESPACE}/{CANCELED}/cancel")
        for number, (id, minutes) in enumerate(_COMING):
            await _create(api, id, f"https://{_HOSTS[number % 3]}/hooks", minutes * MINUTE_MS)
        key = {"name": "billing", "roles": ["read"], "namespaces": [NAMESPACE]}
        assert (await api.post("/api/v1/keys", json=key)).status_code == 201
        assert (await api.post(f"/api/v1/namespaces/{NAMESPACE}/secrets", json={})).is_success
        await wait_for_v1(api, FAILED, "failed", namespace=NAMESPACE)
        await wait_for_v1(api, COMPLETED, "completed", namespace=NAMESPACE)
        matching = {"idPrefix": "trial-ends/"}
        move = {"action": "reschedule", "moveBy": "1m", "namespace": NAMESPACE, "filter": matching}
        assert (await api.post("/api/v1/operations", json=move)).is_success


_HOSTS = ("api.example.com", "hooks.example.net", "billing.example.org")
_COMING = (
    (PENDING, 45),
    *((f"trial-ends/customer-{1002 + number}", 3 + number * 7) for number in range(40)),
    *((f"renewal-{number}", 150 + number * 95) for number in range(30)),
    *((f"report-{number}", 1_600 + number * 400) for number in range(20)),
)


async def _create(
    api: httpx.AsyncClient, id: str, url: str, delay_ms: float, **members: Any
) -> None:
    payload = {"customer": id, "amount": 1999, "currency": "EUR"}
    due_at = in_ms(delay_ms)
    await create_v1(api, id, url, due_at, namespace=NAMESPACE, payload=payload, **members)
