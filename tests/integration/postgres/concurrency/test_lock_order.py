"""All writes lock timers in the order of their keys, so that no deadlock can occur.

In each test a write waits for the first of two keys. It must not hold the second one meanwhile:
the holder of the first would wait for it, and PostgreSQL would have to end one of them.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Claim
from duetime.domain.transitions import Redrive
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.changing import REDRIVE, redrive_values
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.creating import CREATE, create_values
from duetime.testing.store_contract.steps import (
    at,
    claim,
    create,
    failure,
    hand_back,
    ids_of,
    own_shards,
)
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held

FIRST = make_timer("a", execute_at=at(2))
SECOND = make_timer("b", execute_at=at(1))


def creating(*names: str, on_existing: OnExisting = OnExisting.KEEP) -> tuple[Any, ...]:
    timers = [make_timer(name, execute_at=at(9)) for name in names]
    return CREATE, *create_values([CreateRequest(timer, on_existing) for timer in timers])


async def claim_second_first(store: PostgresStore) -> list[Claim]:
    """Both timers, stored in another order than that of their keys."""
    leases = await own_shards(store)
    await create(store, FIRST, SECOND)
    claims = await claim(store, leases, limit=1) + await claim(store, leases, limit=1)
    assert ids_of(claims) == ["b", "a"]
    return claims


async def expect_no_circle(
    options: PostgresOptions,
    database: Connection,
    write: Awaitable[Any],
    on_existing: OnExisting = OnExisting.KEEP,
) -> Any:
    """Write while another transaction holds the first key and then takes the second."""
    async with held(options, *creating("a", on_existing=on_existing)) as other:
        waiting = asyncio.ensure_future(write)
        await other.is_waited_for(database)
        await other.run(*creating("b", on_existing=on_existing))
        await other.commit()
        return await waiting


async def test_claims(store: PostgresStore, options: PostgresOptions, database: Connection) -> None:
    leases = await own_shards(store)
    await create(store, FIRST, SECOND)
    await expect_no_circle(options, database, claim(store, leases), on_existing=OnExisting.REPLACE)


async def test_settlements(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    claims = await claim_second_first(store)
    settling = store.settle([hand_back(claimed) for claimed in claims])
    assert await expect_no_circle(options, database, settling) == [True, True]


async def test_recoveries(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await claim_second_first(store)
    leases = await own_shards(store, owner="node-2")
    assert len(await expect_no_circle(options, database, store.recover(leases))) == 2


async def test_creates(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await expect_no_circle(options, database, create(store, SECOND, FIRST))


async def test_replacements(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await create(store, FIRST, SECOND)
    replacing = create(store, SECOND, FIRST, on_existing=OnExisting.REPLACE)
    await expect_no_circle(options, database, replacing, on_existing=OnExisting.REPLACE)


async def test_creates_of_new_timers(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    new = [CreateRequest(timer, OnExisting.KEEP, id_is_new=True) for timer in (SECOND, FIRST)]
    await expect_no_circle(options, database, store.create(new))


async def test_redrives(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    claims = await claim_second_first(store)
    assert await store.settle([failure(claimed) for claimed in claims]) == [True, True]
    keys = [TimerKey(claimed.namespace, claimed.id) for claimed in claims]
    redriving = store.redrive_if_failed([Redrive(key=key, delivery_id="d") for key in keys], at(3))
    assert None not in await expect_no_circle(options, database, redriving)


async def test_two_redrives(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    claims = await claim_second_first(store)
    assert await store.settle([failure(claimed) for claimed in claims]) == [True, True]
    first, second = (Redrive(key=timer.key, delivery_id="d") for timer in (FIRST, SECOND))
    async with held(options, REDRIVE, *redrive_values([first], at(3))) as other:
        redriving = asyncio.ensure_future(store.redrive_if_failed([second, first], at(3)))
        await other.is_waited_for(database)
        await other.run(REDRIVE, *redrive_values([second], at(3)))
        await other.commit()
        assert await redriving == [None, None]


async def test_requests_for_the_same_keys_in_one_batch(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    creation = create(store, SECOND, FIRST, FIRST, SECOND, on_existing=OnExisting.REPLACE)
    await expect_no_circle(options, database, creation)
