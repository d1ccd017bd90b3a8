"""Clients and engines use the same few keys at once, without deadlocks, and the books balance."""

import asyncio
from random import Random

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, Timer
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.membership import NodeFacts
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore
from duetime.testing.store_contract.steps import at, claim, completion, create, failure, hand_back
from duetime.testing.timers import make_timer

ROUNDS = 60
KEYS = 12
SHARDS = 4
NOW = at(0)


def random_timer(random: Random) -> Timer:
    return make_timer(
        f"t{random.randrange(KEYS)}",
        num_shards=SHARDS,
        execute_at=at(-random.randrange(5)),
        retry_policy=random.choice([None, RetryPolicy(initial_interval_ms=1)]),
    )


def random_settlement(random: Random, claimed: Claim) -> Settlement:
    match random.randrange(3):
        case 0:
            return completion(claimed)
        case 1:
            return failure(claimed)
        case _:
            return hand_back(claimed)


async def create_and_replace(store: PostgresStore, random: Random) -> None:
    for _ in range(ROUNDS):
        timers = [random_timer(random) for _ in range(random.randrange(1, KEYS))]
        await store.create(
            [CreateRequest(timer, random.choice(list(OnExisting))) for timer in timers]
        )


async def create_in_bulk(store: PostgresStore, random: Random) -> None:
    """Create batches of timers that are nearly all new."""
    for number in range(ROUNDS // 4):
        name = f"bulk-{random.randrange(10**9)}"
        timers = {
            timer.key: timer
            for timer in (
                make_timer(f"{name}-{number}-{n}", num_shards=SHARDS, execute_at=at(99))
                for n in range(100)
            )
        }
        if random.randrange(2):
            existing = random_timer(random)
            timers[existing.key] = existing
        await create(store, *timers.values())


async def redrive(store: PostgresStore, random: Random) -> None:
    for _ in range(ROUNDS):
        keys = [random_timer(random).key for _ in range(random.randrange(1, KEYS))]
        await store.redrive_if_failed([Redrive(key=key, delivery_id="r") for key in keys], NOW)


async def change_and_cancel(store: PostgresStore, random: Random) -> None:
    for _ in range(ROUNDS):
        key = random_timer(random).key
        match random.randrange(3):
            case 0:
                change = Change(updated_at=NOW, delivery_id="changed", execute_at=at(-1))
                await store.change_if_pending(key, change)
            case 1:
                await store.cancel_if_pending(key, NOW)
            case _:
                await store.remove_if_pending(key)


async def be_an_engine(store: PostgresStore, random: Random, node: str) -> None:
    for _ in range(ROUNDS):
        await store.heartbeat(node, NodeFacts(), join=True)
        seen = {state.shard: state.epoch for state in await store.shards()}
        chosen = random.sample(sorted(seen), random.randrange(1, SHARDS + 1))
        leases = await store.claim_shards({s: seen[ShardNumber(s)] for s in chosen}, owner=node)
        await store.recover(leases)
        claims = await claim(store, leases, limit=random.randrange(1, KEYS))
        random.shuffle(claims)
        await store.settle([random_settlement(random, claimed) for claimed in claims])


async def forget(store: PostgresStore, random: Random) -> None:
    for _ in range(ROUNDS):
        namespace = random.choice(["default", None])
        finished_before = Instant(NOW + MICROSECONDS_PER_SECOND * 2)
        await store.prune(finished_before=finished_before, limit=3, namespace=namespace)


async def test_everything_at_once(new_options: PostgresOptions) -> None:
    stores = [PostgresStore(new_options) for _ in range(3)]
    for store in stores:
        await store.open()
        await store.add_namespace(Namespace("default", SHARDS))
    async with asyncio.TaskGroup() as group:
        for number, store in enumerate(stores):
            for role in (create_and_replace, create_and_replace, change_and_cancel):
                group.create_task(role(store, Random(f"{role.__name__} {number}")))
            group.create_task(be_an_engine(store, Random(number), f"node-{number}"))
            group.create_task(redrive(store, Random(f"redrive {number}")))
            group.create_task(create_in_bulk(store, Random(f"bulk {number}")))
        group.create_task(forget(stores[0], Random("forget")))
    await create(stores[0], make_timer("last", num_shards=SHARDS))
    seen = {state.shard: state.epoch for state in await stores[0].shards()}
    await stores[0].recover(await stores[0].claim_shards(seen, owner="node-0"))
    for store in stores:
        await store.close()

    inspector = PostgresInspector(new_options)
    await inspector.open()
    report = await inspector.audit(NOW)
    await inspector.close()
    assert list(report.findings) == []
    assert report.accepted == sum(report.counts.values()) + report.forgotten
    assert report.forgotten > 0
