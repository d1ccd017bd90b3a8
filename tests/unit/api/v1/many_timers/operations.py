"""Bulk operations over the v1 API, step by step."""

from collections.abc import Sequence
from typing import Any

from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim
from duetime.domain.transitions import hand_back, settlement_of
from duetime.service.timer_service import new_uuid7
from duetime.testing.store_contract.steps import own_shards
from tests.unit.api.asgi_client import Reply
from tests.unit.api.v1.v1_bench import V1Bench

OPERATIONS = "/api/v1/operations"


async def start(bench: V1Bench, **body: object) -> Reply:
    return await bench.request("POST", OPERATIONS, body)


async def operation(bench: V1Bench, started: Reply) -> Any:
    return (await bench.request("GET", f"{OPERATIONS}/{started.json['id']}")).json


async def step(bench: V1Bench) -> None:
    """Let the runner take one batch, without its pauses."""
    bench.bulk_runner.wake()
    await bench.bulk_runner.step()


async def finish(bench: V1Bench, started: Reply) -> Any:
    """Run the operation to its end, and answer it."""
    assert started.status == 202, started.content
    assert started.headers["location"] == f"{OPERATIONS}/{started.json['id']}"
    while (ended := await operation(bench, started))["status"] == "running":
        await step(bench)
    assert ended["finishedAt"] is not None
    return ended


async def claim(bench: V1Bench) -> Sequence[Claim]:
    """Claim everything that is due, as the engine would."""
    leases = await own_shards(bench.store)
    now = bench.clock.now()
    batch = await bench.store.claim_due(leases, now=now, until_inclusive=now, limit=1_000)
    return batch.claims


async def settle(bench: V1Bench, claims: Sequence[Claim], outcome: Outcome | None = None) -> None:
    """Settle the claims; without an outcome they are handed back."""
    now = bench.clock.now()
    settlements = [
        hand_back(claim, due_at=claim.due_at, now=now)
        if outcome is None
        else settlement_of(claim, outcome, chance=0, new_delivery_id=new_uuid7)
        for claim in claims
    ]
    assert all(await bench.store.settle(settlements))


async def run(bench: V1Bench, **body: object) -> Any:
    return await finish(bench, await start(bench, **body))
