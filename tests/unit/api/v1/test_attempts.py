"""The outcomes of attempts in both APIs."""

from collections.abc import Callable
from typing import Any

import pytest

from duetime.domain.timer import Claim
from duetime.domain.transitions import Settlement
from duetime.testing.store_contract.steps import (
    claim,
    completion,
    failure,
    interruption,
    own_shards,
    reschedule,
)
from tests.unit.api.v1.v1_bench import V1Bench

ID = "01977f3e-7a10-7cc2-9d53-3f1f4c1f8a55"


async def attempts_in_both_apis(bench: V1Bench) -> tuple[list[Any], list[Any]]:
    platform = await bench.request("GET", f"/timers/{ID}")
    return (await bench.timer(ID))["attempts"], platform.data["attempts"]


@pytest.mark.parametrize(
    ("settlement_of", "status", "outcome", "error"),
    [
        (completion, "completed", "completed", None),
        (reschedule, "pending", "rescheduled", None),
        (failure, "pending", "failed", "HTTP 500"),
        (interruption, "pending", "interrupted", "connection reset"),
    ],
)
async def test_an_attempt_with_an_answer(
    bench: V1Bench,
    settlement_of: Callable[[Claim], Settlement],
    status: str,
    outcome: str,
    error: str | None,
) -> None:
    await bench.create_v1(ID)
    (claimed,) = await claim(bench.store, await own_shards(bench.store))
    assert await bench.store.settle([settlement_of(claimed)]) == [True]
    assert (await bench.timer(ID))["status"] == status
    for attempts in await attempts_in_both_apis(bench):
        assert [(attempt["outcome"], attempt["error"]) for attempt in attempts] == [
            (outcome, error)
        ]


async def test_an_attempt_that_the_service_did_not_survive(bench: V1Bench) -> None:
    await bench.create_v1(ID)
    await claim(bench.store, await own_shards(bench.store))
    await bench.store.recover(await own_shards(bench.store))
    for attempts in await attempts_in_both_apis(bench):
        assert [attempt["outcome"] for attempt in attempts] == ["interrupted"]


async def test_a_timer_that_was_rescheduled_and_then_completed(bench: V1Bench) -> None:
    await bench.create_v1(ID)
    leases = await own_shards(bench.store)
    for settlement_of in (reschedule, completion):
        (claimed,) = await claim(bench.store, leases)
        assert await bench.store.settle([settlement_of(claimed)]) == [True]
    for attempts in await attempts_in_both_apis(bench):
        assert [attempt["outcome"] for attempt in attempts] == ["rescheduled", "completed"]
