"""The v1 API over a service on a memory store."""

from typing import Any
from urllib.parse import quote

from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.outcome import Failed
from duetime.domain.retry import RetryPolicy
from duetime.domain.transitions import Change, settlement_of
from duetime.testing.store_contract.steps import own_shards
from tests.unit.api.asgi_client import IN_TEN_SECONDS, ApiBench, Reply

URL = "https://example.com/due"
BASE = "/api/v1/timers"


def create_body(id: str = "one", **changes: object) -> dict[str, object]:
    return {"id": id, "executeAt": IN_TEN_SECONDS, "callbackUrl": URL, **changes}


def path_of(namespace: str, id: str) -> str:
    return f"{BASE}/{quote(namespace, safe='')}/{quote(id, safe='')}"


def error_of(reply: Reply) -> tuple[int, str, str]:
    """Status, code and message of an error answer, whose form is checked."""
    body = reply.json
    assert list(body) == ["error", "message", "details", "timestamp"]
    assert body["timestamp"].endswith("Z")
    assert reply.headers["content-type"] == "application/json"
    return reply.status, body["error"], body["message"]


class V1Bench(ApiBench):
    async def open(self) -> "V1Bench":
        await super().open()
        await self.store.add_namespace(Namespace("notifications", 64))
        quick = RetryPolicy(max_retries=7, initial_interval_ms=100)
        options = NamespaceOptions(retry_policy=quick, max_payload_bytes=20)
        await self.store.add_namespace(Namespace("small", 1, options))
        return self

    async def post(self, path: str, body: object) -> Reply:
        return await self.request("POST", BASE + path, body)

    async def create_v1(self, id: str = "one", **changes: object) -> Reply:
        return await self.post("", create_body(id, **changes))

    async def timer(self, id: str = "one", namespace: str = "default") -> Any:
        reply = await self.request("GET", path_of(namespace, id))
        assert reply.status == 200, reply.content
        return reply.json

    async def fail(self, *ids: str, error: str = "HTTP 500", namespace: str = "default") -> None:
        """Let existing timers fail for good, as the engine would."""
        now = self.clock.now()
        for id in ids:
            change = Change(updated_at=now, delivery_id="d", execute_at=now, retry_policy=None)
            await self.store.change_if_pending(TimerKey(namespace, id), change)
        leases = await own_shards(self.store)
        batch = await self.store.claim_due(leases, now=now, until_inclusive=now, limit=1_000)
        outcome = Failed(sent_at=now, answered_at=now, error=error)
        settlements = [
            settlement_of(claim, outcome, chance=0, new_delivery_id=lambda: "x")
            for claim in batch.claims
        ]
        assert all(await self.store.settle(settlements))
