"""Creates of a key whose timer is moving from one table to another."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.store import (
    ClaimStart,
    CreateRequest,
    CreateResult,
    DuePosition,
    Existence,
    OnExisting,
)
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.changing import (
    CANCEL,
    CHANGE,
    REDRIVE,
    REMOVE,
    change_values,
    redrive_values,
)
from duetime.stores.postgres.claiming import claim_statement, claim_values
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.creating import CREATE, create_values
from duetime.stores.postgres.settling import SETTLE, SETTLING_ROLE, settlement_values
from duetime.testing.store_contract.steps import (
    at,
    claim,
    completion,
    create,
    failure,
    hand_back,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held

TIMER = make_timer("same", execute_at=at(5), retry_policy=RetryPolicy())
NEWCOMER = make_timer("same", execute_at=at(50), delivery_id="newcomer", created_at=at(3))


async def claimed_one(store: PostgresStore) -> Claim:
    """The timer, executing; the history has a partition."""
    await create(store, make_timer("first"))
    await store.cancel_if_pending(make_timer("first").key, at(0))
    await create(store, TIMER)
    (claimed,) = await claim(store, await own_shards(store))
    return claimed


def settling(*settlements: Settlement) -> tuple[Any, ...]:
    return SETTLE, SETTLING_ROLE, *settlement_values(settlements)


async def create_during(
    options: PostgresOptions,
    database: Connection,
    store: PostgresStore,
    *write: Any,
    on_existing: OnExisting = OnExisting.KEEP,
) -> CreateResult:
    """Create the newcomer, which waits for the write."""
    async with held(options, *write) as under_way:
        creation = asyncio.create_task(create(store, NEWCOMER, on_existing=on_existing))
        await under_way.is_waited_for(database)
        await under_way.commit()
        (result,) = await creation
    return result


@pytest.mark.parametrize("on_existing", OnExisting)
async def test_a_create_during_a_claim(
    store: PostgresStore, options: PostgresOptions, database: Connection, on_existing: OnExisting
) -> None:
    leases = await own_shards(store)
    await create(store, TIMER)
    values = claim_values(leases, at(5), at(9), 10, ClaimStart(DuePosition(at(0), b""), {}))
    result = await create_during(
        options, database, store, claim_statement(16), *values, on_existing=on_existing
    )
    assert result.existence is Existence.EXISTING
    assert result.timer.status is TimerStatus.EXECUTING
    assert await stored(store, TIMER.key) == result.timer


async def test_a_create_during_a_retry(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    claimed = await claimed_one(store)
    result = await create_during(options, database, store, *settling(failure(claimed)))
    assert result.existence is Existence.EXISTING
    assert (result.timer.status, result.timer.attempt) == (TimerStatus.PENDING, 1)


async def test_a_create_during_a_completion(store: PostgresStore, options: PostgresOptions) -> None:
    claimed = await claimed_one(store)
    async with held(options, *settling(completion(claimed))) as under_way:
        (before,) = await create(store, NEWCOMER)
        await under_way.commit()
    (after,) = await create(store, NEWCOMER)
    assert (before.existence, after.existence) == (Existence.EXISTING, Existence.EXISTING)
    assert before.timer.status is TimerStatus.EXECUTING
    assert after.timer.status is TimerStatus.COMPLETED


async def test_a_create_during_a_cancellation(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await claimed_one(store)
    timer = make_timer("same-again")
    await create(store, timer)
    async with held(options, CANCEL, *timer.key, at(9), None) as under_way:
        creation = asyncio.create_task(create(store, timer))
        await under_way.is_waited_for(database)
        await under_way.commit()
        (result,) = await creation
    assert result.existence is Existence.EXISTING
    assert result.timer.status is TimerStatus.CANCELED


async def test_a_create_during_a_removal(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await create(store, TIMER)
    result = await create_during(options, database, store, REMOVE, *TIMER.key)
    assert result == CreateResult(Existence.CREATED, NEWCOMER)
    assert await stored(store, TIMER.key) == NEWCOMER


async def test_a_create_during_a_change(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await create(store, TIMER)
    change = Change(updated_at=at(1), delivery_id="changed", execute_at=at(7))
    values = change_values(TIMER.key, change)
    result = await create_during(
        options, database, store, CHANGE, *values, on_existing=OnExisting.REPLACE
    )
    assert result.existence is Existence.REPLACED
    assert (result.timer.created_at, result.timer.due_at) == (TIMER.created_at, at(50))
    assert await stored(store, TIMER.key) == result.timer


async def test_a_create_during_a_create(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    first = create_values([CreateRequest(TIMER, OnExisting.KEEP)])
    result = await create_during(options, database, store, CREATE, *first)
    assert result == CreateResult(Existence.EXISTING, TIMER)


async def failed_one(store: PostgresStore) -> Redrive:
    """A failed timer, and the statement that redrives it."""
    claimed = await claimed_one(store)
    without_retries = replace(claimed, retry_policy=None)
    assert await store.settle([failure(without_retries)]) == [True]
    return Redrive(key=TIMER.key, delivery_id="again")


@pytest.mark.parametrize("on_existing", OnExisting)
async def test_a_create_during_a_redrive(
    store: PostgresStore, options: PostgresOptions, database: Connection, on_existing: OnExisting
) -> None:
    redrive = redrive_values([await failed_one(store)], at(9))
    result = await create_during(
        options, database, store, REDRIVE, *redrive, on_existing=on_existing
    )
    assert result.timer.status is TimerStatus.PENDING
    assert result.timer == await stored(store, TIMER.key)
    if on_existing is OnExisting.KEEP:
        assert (result.existence, result.timer.delivery_id) == (Existence.EXISTING, "again")
    else:
        assert (result.existence, result.timer.delivery_id) == (Existence.REPLACED, "newcomer")


async def test_a_create_during_a_redrive_that_is_rolled_back(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    redrive = redrive_values([await failed_one(store)], at(9))
    async with held(options, REDRIVE, *redrive) as under_way:
        creation = asyncio.create_task(create(store, NEWCOMER))
        await under_way.is_waited_for(database)
        await under_way.roll_back()
        (result,) = await creation
    assert (result.existence, result.timer.status) == (Existence.EXISTING, TimerStatus.FAILED)


async def test_a_redrive_waits_for_a_create_of_its_key(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    redrive = await failed_one(store)
    values = create_values([CreateRequest(NEWCOMER, OnExisting.REPLACE)])
    async with held(options, CREATE, *values) as under_way:
        redriving = asyncio.create_task(store.redrive_if_failed([redrive], at(9)))
        await under_way.is_waited_for(database)
        await under_way.commit()
        (redriven,) = await redriving
    assert redriven is not None
    assert redriven == await stored(store, TIMER.key)
    assert redriven.delivery_id == "again"


async def test_a_redrive_finds_a_pruned_timer_gone(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    redrive = await failed_one(store)
    async with held(options, "DELETE FROM finished_timers WHERE status = 3") as under_way:
        redriving = asyncio.create_task(store.redrive_if_failed([redrive], at(9)))
        await under_way.is_waited_for(database)
        await under_way.commit()
        assert await redriving == [None]
    assert await store.get(TIMER.key) is None


async def test_a_settlement_waits_for_a_create_of_its_key(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    claimed = await claimed_one(store)
    async with held(
        options, CREATE, *create_values([CreateRequest(TIMER, OnExisting.KEEP)])
    ) as under_way:
        settlement = asyncio.create_task(store.settle([hand_back(claimed)]))
        await under_way.is_waited_for(database)
        await under_way.commit()
        assert await settlement == [True]
    assert (await stored(store, TIMER.key)).status is TimerStatus.PENDING
    assert await store.counts() == {
        **dict.fromkeys(TimerStatus, 0),
        TimerStatus.PENDING: 1,
        TimerStatus.CANCELED: 1,
    }
