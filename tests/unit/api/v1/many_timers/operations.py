"""Bulk operations over the v1 API, step by step."""

from typing import Any

from tests.unit.api.asgi_client import Reply
from tests.unit.api.v1.v1_bench import V1Bench

OPERATIONS = "/api/v1/operations"


async def start(bench: V1Bench, **body: object) -> Reply:
    return await bench.request("POST", OPERATIONS, body)


async def operation(bench: V1Bench, started: Reply) -> Any:
    return (await bench.request("GET", f"{OPERATIONS}/{started.json['id']}")).json


async def finish(bench: V1Bench, started: Reply) -> Any:
    """Run the operation to its end, and answer it."""
    assert started.status == 202, started.content
    assert started.headers["location"] == f"{OPERATIONS}/{started.json['id']}"
    while (ended := await operation(bench, started))["status"] == "running":
        await bench.bulk_runner.step()
    assert ended["finishedAt"] is not None
    return ended


async def run(bench: V1Bench, **body: object) -> Any:
    return await finish(bench, await start(bench, **body))
