"""A claim meets timers that a client is changing: exactly one side wins."""

import asyncio
from typing import Any

import pytest

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.changing import CANCEL, CHANGE, REMOVE, change_values
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.creating import CREATE, create_values
from duetime.testing.store_contract.steps import at, create, ids_of, own_shards, stored
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held

TIMER = make_timer("same", execute_at=at(5))
OTHER = make_timer("zz-other", execute_at=at(6))


def changing_to(execute_at: Instant) -> tuple[Any, ...]:
    change = Change(updated_at=at(1), delivery_id="changed", execute_at=execute_at)
    return CHANGE, *change_values(TIMER.key, change)


async def claim_during(
    options: PostgresOptions, database: Connection, store: PostgresStore, *write: Any
) -> list[str]:
    """The ids that are claimed up to the tenth second during the write."""
    await create(store, make_timer("first"))
    await store.cancel_if_pending(make_timer("first").key, at(0))
    leases = await own_shards(store)
    await create(store, TIMER, OTHER)
    async with held(options, *write) as under_way:
        claiming = asyncio.create_task(
            store.claim_due(leases, now=at(10), until_inclusive=at(10), limit=10)
        )
        await under_way.is_waited_for(database)
        await under_way.commit()
        batch = await claiming
    # A claim that passes a timer over says that more is due, so that no timer waits for a poll.
    assert len(batch.claims) == 2 or (batch.next_due_at or at(99)) <= at(10)
    again = await store.claim_due(leases, now=at(10), until_inclusive=at(10), limit=10)
    assert (again.next_due_at or at(99)) > at(10)
    return ids_of(batch.claims) + ids_of(again.claims)


@pytest.mark.parametrize("write", [(CANCEL, *TIMER.key, at(1), None), (REMOVE, *TIMER.key)])
async def test_a_timer_that_is_canceled_or_removed_is_not_claimed(
    store: PostgresStore, options: PostgresOptions, database: Connection, write: tuple[Any, ...]
) -> None:
    assert await claim_during(options, database, store, *write) == ["zz-other"]
    assert (await store.counts())[TimerStatus.EXECUTING] == 1


async def test_a_timer_that_is_postponed_is_not_claimed_before_its_new_instant(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    assert await claim_during(options, database, store, *changing_to(at(11))) == ["zz-other"]
    timer = await stored(store, TIMER.key)
    assert (timer.status, timer.due_at) == (TimerStatus.PENDING, at(11))


async def test_a_timer_that_is_changed_and_still_due_is_claimed_as_it_is_now(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    claimed = await claim_during(options, database, store, *changing_to(at(9)))
    assert sorted(claimed) == ["same", "zz-other"]
    timer = await stored(store, TIMER.key)
    assert (timer.status, timer.due_at) == (TimerStatus.EXECUTING, at(9))
    assert (timer.delivery_id, timer.attempt) == ("changed", 1)


async def test_a_timer_that_is_replaced_by_a_later_one_is_not_claimed(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    later = CreateRequest(make_timer("same", execute_at=at(20)), OnExisting.REPLACE)
    replacing = (CREATE, *create_values([later]))
    assert await claim_during(options, database, store, *replacing) == ["zz-other"]
    assert (await stored(store, TIMER.key)).due_at == at(20)
