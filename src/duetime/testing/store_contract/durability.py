"""Durability: every answered write is still there after the storage was opened again."""

import pytest

from duetime.domain import transitions
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.leases import ShardState
from duetime.ports.store import OnExisting, PageQuery
from duetime.testing.store_contract.steps import (
    FAR_FUTURE,
    Reopen,
    Store,
    at,
    claim,
    completion,
    create,
    failure,
    hand_back,
    ids_of,
    own_shards,
    reschedule,
    stored,
)
from duetime.testing.timers import make_timer


async def durable(store: Store, reopen: Reopen) -> Store:
    """The store, opened again if it is durable."""
    return await reopen() if store.capabilities.durable else store


@pytest.mark.asyncio
class DurabilityContract:
    async def test_timers_of_every_history_survive(self, store: Store, reopen: Reopen) -> None:
        leases = await own_shards(store)
        policy = RetryPolicy()
        timers = [make_timer(f"t{n}", execute_at=at(n), retry_policy=policy) for n in range(10)]
        await create(store, *timers)
        claims = await claim(store, leases, limit=6)
        await store.settle([completion(claims[0]), failure(claims[1]), hand_back(claims[2])])
        await store.settle([reschedule(claims[3], at(70))])
        await store.cancel_if_pending(timers[6].key, at(1))
        change = Change(updated_at=at(1), delivery_id="second", execute_at=at(80))
        await store.change_if_pending(timers[7].key, change)
        await store.remove_if_pending(timers[8].key)
        await create(store, make_timer("t9", execute_at=at(90)), on_existing=OnExisting.REPLACE)

        before = [await store.get(timer.key) for timer in timers]
        counts = await store.counts()
        page = await store.page(PageQuery(namespace="default"))
        reopened = await durable(store, reopen)
        assert [await reopened.get(timer.key) for timer in timers] == before
        assert await reopened.counts() == counts
        assert await reopened.page(PageQuery(namespace="default")) == page

    async def test_the_due_order_survives(self, store: Store, reopen: Reopen) -> None:
        timers = [make_timer(f"t{n}", execute_at=at(n * 7 % 5)) for n in range(50)]
        await create(store, *timers)
        reopened = await durable(store, reopen)
        expected = sorted(timers, key=lambda timer: (timer.due_at, timer.timer_uuid))
        claims = await claim(reopened, await own_shards(reopened))
        assert ids_of(claims) == [timer.key.id for timer in expected]

    async def test_a_canceled_timer_stays_canceled(self, store: Store, reopen: Reopen) -> None:
        await create(store, make_timer())
        await store.cancel_if_pending(make_timer().key, at(1))
        reopened = await durable(store, reopen)
        assert (await stored(reopened, make_timer().key)).status is TimerStatus.CANCELED
        assert await claim(reopened, await own_shards(reopened)) == []

    async def test_namespaces_and_leases_survive(self, store: Store, reopen: Reopen) -> None:
        await store.add_namespace(Namespace("orders", 32))
        await own_shards(store, [1, 2], owner="node-1")
        await store.release_shards({ShardNumber(2): Epoch(1)})
        reopened = await durable(store, reopen)
        shards = await reopened.shards()
        assert len(shards) == 32
        assert shards[1] == ShardState(ShardNumber(1), Epoch(1), "node-1")
        assert shards[2] == ShardState(ShardNumber(2), Epoch(1), None)
        assert await reopened.add_namespace(Namespace("orders", 8)) == Namespace("orders", 32)

    async def test_a_timer_that_was_executing_when_the_process_died_is_recovered(
        self, store: Store, reopen: Reopen
    ) -> None:
        timer = make_timer()
        await create(store, timer)
        await claim(store, await own_shards(store))
        executing = await stored(store, timer.key)
        reopened = await durable(store, reopen)
        assert await reopened.get(timer.key) == executing
        leases = await own_shards(reopened)
        assert list(await reopened.recover(leases)) == [timer.due_at]
        assert await reopened.get(timer.key) == transitions.recovered(executing)
        assert ids_of(await claim(reopened, leases)) == [timer.key.id]

    async def test_an_owner_settles_across_a_reopening(self, store: Store, reopen: Reopen) -> None:
        await create(store, make_timer())
        (claimed,) = await claim(store, await own_shards(store))
        reopened = await durable(store, reopen)
        assert await reopened.settle([completion(claimed)]) == [True]

    async def test_pruned_and_removed_timers_stay_gone(self, store: Store, reopen: Reopen) -> None:
        pruned, removed = make_timer("pruned"), make_timer("removed")
        await create(store, pruned, removed)
        await store.cancel_if_pending(pruned.key, at(1))
        await store.prune(finished_before=at(FAR_FUTURE), limit=10)
        await store.remove_if_pending(removed.key)
        reopened = await durable(store, reopen)
        assert await reopened.get(pruned.key) is None
        assert await reopened.get(removed.key) is None
