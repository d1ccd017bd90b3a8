"""Taking a shard waits for its owner's writes; later writes of that owner change nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any

from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.store import ClaimStart, DuePosition, Leases
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.claiming import claim_statement, claim_values
from duetime.stores.postgres.cluster import CLAIM_SHARDS, epochs_by_number
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.settling import SETTLE, SETTLING_ROLE, settlement_values
from duetime.testing.store_contract.steps import (
    at,
    claim,
    completion,
    create,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import PATIENCE_SECONDS, held

TIMERS = [make_timer(f"t{n}", execute_at=at(n)) for n in range(20)]


def claiming(leases: Leases) -> tuple[Any, ...]:
    start = ClaimStart(DuePosition(at(-99), b""), {})
    return claim_statement(len(leases)), *claim_values(leases, at(0), at(99), 100, start)


def settling(claims: Sequence[Claim]) -> tuple[Any, ...]:
    values = settlement_values([completion(claimed) for claimed in claims])
    return SETTLE, SETTLING_ROLE, *values


def taking(leases: Leases) -> tuple[Any, ...]:
    return CLAIM_SHARDS, list(leases), epochs_by_number(leases), "node-2"


async def test_taking_shards_waits_for_a_claim_and_its_timers_are_recovered(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS)
    async with held(options, *claiming(leases)) as claim_under_way:
        takeover = asyncio.create_task(store.claim_shards(leases, owner="node-2"))
        await claim_under_way.is_waited_for(database)
        assert not takeover.done()
        await claim_under_way.commit()
        taken = await takeover
    assert taken == {shard: Epoch(epoch + 1) for shard, epoch in leases.items()}
    assert sorted(await store.recover(taken)) == [timer.due_at for timer in TIMERS]
    assert len(await claim(store, taken)) == len(TIMERS)


async def test_taking_shards_waits_for_a_settlement(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS)
    claims = await claim(store, leases)
    await store.settle([completion(claims[0])])
    async with held(options, *settling(claims[1:])) as settlement_under_way:
        takeover = asyncio.create_task(store.claim_shards(leases, owner="node-2"))
        await settlement_under_way.is_waited_for(database)
        await settlement_under_way.commit()
        taken = await takeover
    assert await store.recover(taken) == []
    assert (await store.counts())[TimerStatus.COMPLETED] == len(TIMERS)


async def test_a_claim_that_waited_for_a_takeover_claims_nothing(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS)
    async with held(options, *taking(leases)) as takeover:
        late = asyncio.create_task(claim(store, leases))
        await takeover.is_waited_for(database)
        await takeover.commit()
        assert await late == []
    assert (await store.counts())[TimerStatus.PENDING] == len(TIMERS)


async def test_a_claim_that_waited_for_a_takeover_claims_from_the_shards_it_still_has(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS)
    lost = TIMERS[0].shard
    async with held(options, *taking({lost: leases[lost]})) as takeover:
        late = asyncio.create_task(claim(store, leases))
        await takeover.is_waited_for(database)
        await takeover.commit()
        assert ids_of(await late) == [timer.key.id for timer in TIMERS if timer.shard != lost]


async def test_a_settlement_that_waited_for_a_takeover_changes_nothing(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS)
    claims = await claim(store, leases)
    await store.settle([completion(claims[0])])
    before = await stored(store, TIMERS[1].key)
    async with held(options, *taking(leases)) as takeover:
        late = asyncio.create_task(store.settle([completion(each) for each in claims[1:]]))
        await takeover.is_waited_for(database)
        await takeover.commit()
        assert not any(await late)
    assert await store.get(TIMERS[1].key) == before
    taken = {shard: Epoch(epoch + 1) for shard, epoch in leases.items()}
    assert len(await store.recover(taken)) == len(claims) - 1


async def test_a_recovery_that_waited_for_a_takeover_changes_nothing(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    await create(store, *TIMERS)
    await claim(store, await own_shards(store))
    leases = await own_shards(store, owner="node-2")
    async with held(options, *taking(leases)) as takeover:
        late = asyncio.create_task(store.recover(leases))
        await takeover.is_waited_for(database)
        await takeover.commit()
        assert await late == []
    assert (await store.counts())[TimerStatus.EXECUTING] == len(TIMERS)


async def test_a_takeover_that_fails_leaves_the_owner_its_shards(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS)
    async with held(options, *taking(leases)) as takeover:
        late = asyncio.create_task(claim(store, leases))
        await takeover.is_waited_for(database)
        await takeover.roll_back()
        assert len(await late) == len(TIMERS)


async def test_claims_and_settlements_of_an_owner_do_not_wait_for_each_other(
    store: PostgresStore, options: PostgresOptions
) -> None:
    leases = await own_shards(store)
    await create(store, *TIMERS[:10])
    claims = await claim(store, leases)
    await create(store, *TIMERS[10:])
    async with held(options, *claiming(leases)), asyncio.timeout(PATIENCE_SECONDS):
        assert all(await store.settle([completion(each) for each in claims]))


async def test_a_claim_of_nothing_writes_nothing(
    store: PostgresStore, database: Connection
) -> None:
    """An engine that polls must not keep the disk busy."""
    leases = await own_shards(store)
    await create(store, make_timer("later", execute_at=at(500)))
    statement = "SELECT pg_current_xact_id()::text::bigint"
    before = await database.fetchval(statement)
    for _ in range(10):
        batch = await store.claim_due(leases, now=at(0), until_inclusive=at(0), limit=10)
        assert batch.next_due_at == at(500)
    written_by = "SELECT count(*) FROM shard_fences WHERE xmax::text::bigint > $1"
    assert await database.fetchval(written_by, before) == 0


async def test_two_nodes_that_take_the_same_shards_at_once_get_each_shard_once(
    store: PostgresStore, options: PostgresOptions
) -> None:
    other = PostgresStore(options)
    await other.open()
    for _ in range(10):
        seen = {state.shard: state.epoch for state in await store.shards()}
        backwards: dict[ShardNumber, Epoch] = dict(reversed(seen.items()))
        mine, theirs = await asyncio.gather(
            store.claim_shards(seen, owner="node-1"), other.claim_shards(backwards, owner="node-2")
        )
        assert not mine.keys() & theirs.keys()
        assert mine.keys() | theirs.keys() == seen.keys()
    await other.close()
