"""Pruning: finished timers are forgotten, oldest first; live ones never."""

import pytest

from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import Existence
from duetime.testing.store_contract.steps import (
    FAR_FUTURE,
    Store,
    at,
    brought_to,
    claim,
    create,
    ids_of,
    own_shards,
)
from duetime.testing.timers import make_timer

FINISHED = [status for status in TimerStatus if status.is_finished]


async def finish_at(store: Store, *seconds: int, namespace: str = "default") -> None:
    """One canceled timer for each instant, named after it."""
    for second in seconds:
        timer = make_timer(f"at-{second}", namespace=namespace, execute_at=at(FAR_FUTURE))
        await create(store, timer)
        await store.cancel_if_pending(timer.key, at(second))


async def left(store: Store, *seconds: int, namespace: str = "default") -> list[int]:
    return [n for n in seconds if await store.get(TimerKey(namespace, f"at-{n}")) is not None]


@pytest.mark.asyncio
class PruningContract:
    async def test_the_bound_is_exclusive(self, store: Store) -> None:
        await finish_at(store, 1, 2, 3)
        assert await store.prune(finished_before=at(2), limit=10) == 1
        assert await left(store, 1, 2, 3) == [2, 3]

    async def test_the_limit_takes_the_oldest_first(self, store: Store) -> None:
        instants = [5, 1, 4, 2, 6, 3]
        await finish_at(store, *instants)
        assert await store.prune(finished_before=at(100), limit=4) == 4
        assert await left(store, *instants) == [5, 6]
        assert await store.prune(finished_before=at(100), limit=4) == 2
        assert await store.prune(finished_before=at(100), limit=4) == 0
        assert await left(store, *instants) == []

    async def test_a_later_timer_that_finished_first_does_not_hold_up_others(
        self, store: Store
    ) -> None:
        """This happens when the clock is set back in between."""
        await finish_at(store, 100, 1)
        assert await store.prune(finished_before=at(50), limit=1) == 1
        assert await left(store, 100, 1) == [100]

    @pytest.mark.parametrize("status", FINISHED)
    async def test_every_finished_status_is_pruned_and_its_key_is_free(
        self, store: Store, status: TimerStatus
    ) -> None:
        leases = await own_shards(store)
        timer = await brought_to(store, leases, make_timer("gone"), status)
        assert await store.prune(finished_before=timer.updated_at, limit=10) == 0
        assert await store.prune(finished_before=at(100), limit=10) == 1
        assert await store.get(timer.key) is None
        (result,) = await create(store, make_timer("gone", delivery_id="again"))
        assert result.existence is Existence.CREATED
        assert ids_of(await claim(store, leases)) == ["gone"]

    async def test_live_timers_are_never_pruned(self, store: Store) -> None:
        leases = await own_shards(store)
        executing = await brought_to(store, leases, make_timer("executing"), TimerStatus.EXECUTING)
        pending = make_timer("pending")
        await create(store, pending)
        assert await store.prune(finished_before=at(FAR_FUTURE), limit=100) == 0
        assert await store.get(executing.key) == executing
        assert await store.get(pending.key) == pending

    async def test_a_prune_answers_how_many_timers_are_gone(self, store: Store) -> None:
        timers = [make_timer(f"t{n}") for n in range(60)]
        await create(store, *timers)
        for timer in timers:
            await store.cancel_if_pending(timer.key, at(1))
        assert await store.prune(finished_before=at(2), limit=45) == 45
        assert (await store.counts())[TimerStatus.CANCELED] == 15
        assert await store.prune(finished_before=at(2), limit=45) == 15

    async def test_a_prune_of_one_namespace_leaves_the_others_alone(self, store: Store) -> None:
        instants = [1, 2, 3, 4]
        for namespace in ("a", "b"):
            await store.add_namespace(Namespace(namespace, 16))
            await finish_at(store, *instants, namespace=namespace)
        await finish_at(store, *instants)
        assert await store.prune(finished_before=at(3), limit=10, namespace="a") == 2
        assert await left(store, *instants, namespace="a") == [3, 4]
        assert await left(store, *instants, namespace="b") == instants
        assert await left(store, *instants) == instants
        assert (await store.counts("a"))[TimerStatus.CANCELED] == 2
        assert (await store.counts("b"))[TimerStatus.CANCELED] == 4
        assert (await store.counts())[TimerStatus.CANCELED] == 10
        assert await store.prune(finished_before=at(3), limit=10, namespace="a") == 0
        assert await store.prune(finished_before=at(3), limit=10, namespace="nowhere") == 0

    async def test_the_limit_and_the_bound_hold_for_one_namespace_too(self, store: Store) -> None:
        instants = [5, 1, 4, 2, 6, 3]
        await store.add_namespace(Namespace("other", 16))
        await finish_at(store, *instants, namespace="other")
        await finish_at(store, *instants)
        before = at(6)
        assert await store.prune(finished_before=before, limit=4, namespace="other") == 4
        assert await store.prune(finished_before=before, limit=4, namespace="other") == 1
        assert await store.prune(finished_before=before, limit=4, namespace="other") == 0
        assert await left(store, *instants, namespace="other") == [6]
        assert await left(store, *instants) == instants

    async def test_a_prune_of_all_follows_a_prune_of_one_namespace(self, store: Store) -> None:
        await store.add_namespace(Namespace("other", 16))
        await finish_at(store, 1, 3, 5, namespace="other")
        await finish_at(store, 2, 4, 6)
        assert await store.prune(finished_before=at(4), limit=10, namespace="other") == 2
        assert await store.prune(finished_before=at(6), limit=2) == 2
        assert await left(store, 2, 4, 6) == [6]
        assert await left(store, 1, 3, 5, namespace="other") == [5]
        assert await store.prune(finished_before=at(7), limit=10) == 2

    async def test_a_pruned_key_of_one_namespace_is_free_again(self, store: Store) -> None:
        await finish_at(store, 1)
        assert await store.prune(finished_before=at(2), limit=10, namespace="default") == 1
        await finish_at(store, 1)
        assert await left(store, 1) == [1]
        assert await store.prune(finished_before=at(2), limit=10) == 1

    async def test_live_timers_of_a_namespace_are_never_pruned(self, store: Store) -> None:
        leases = await own_shards(store)
        executing = await brought_to(store, leases, make_timer("executing"), TimerStatus.EXECUTING)
        pending = await brought_to(store, leases, make_timer("pending"), TimerStatus.PENDING)
        pruned = await store.prune(finished_before=at(FAR_FUTURE), limit=100, namespace="default")
        assert pruned == 0
        assert await store.get(executing.key) == executing
        assert await store.get(pending.key) == pending
