"""Claims from more shards than one statement merges."""

import pytest

from duetime.domain.namespace import Namespace
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.claiming import MAX_MERGED_SHARDS
from duetime.testing.store_contract.steps import at, claim, create, ids_of, own_shards
from duetime.testing.timers import make_timer

SHARDS = MAX_MERGED_SHARDS * 2
LIMIT = 50


@pytest.fixture
async def store(store: PostgresStore) -> PostgresStore:
    await store.add_namespace(Namespace("wide", SHARDS))
    await store.add_namespace(Namespace("narrow", 1))
    return store


async def test_evenly_spread_timers_are_claimed_in_order_and_in_full(store: PostgresStore) -> None:
    timers = [
        make_timer(f"t{n}", namespace="wide", num_shards=SHARDS, execute_at=at(n * 7 % 300))
        for n in range(300)
    ]
    await create(store, *timers)
    leases = await own_shards(store)
    expected = [timer.key.id for timer in sorted(timers, key=lambda t: (t.due_at, t.timer_uuid))]
    for start in range(0, 300, LIMIT):
        assert ids_of(await claim(store, leases, limit=LIMIT)) == expected[start : start + LIMIT]
    assert await claim(store, leases, limit=LIMIT) == []


async def test_timers_of_one_shard_are_claimed_in_order_and_ever_faster(
    store: PostgresStore,
) -> None:
    crowded = [
        make_timer(f"t{n}", namespace="narrow", num_shards=1, execute_at=at(n)) for n in range(400)
    ]
    last = make_timer("last", namespace="wide", num_shards=SHARDS, execute_at=at(1_000))
    await create(store, *crowded, last)
    leases = await own_shards(store)
    expected = [timer.key.id for timer in crowded] + ["last"]
    claimed: list[str] = []
    sizes = []
    while len(claimed) < len(expected):
        batch = await store.claim_due(leases, now=at(0), until_inclusive=at(9_999), limit=LIMIT)
        claimed += ids_of(batch.claims)
        sizes.append(len(batch.claims))
        left = len(expected) - len(claimed)
        assert batch.next_due_at == (at(len(claimed)) if left > 1 else at(1_000) if left else None)
    assert claimed == expected
    assert 0 < sizes[0] < sizes[1] <= LIMIT
    assert LIMIT in sizes
