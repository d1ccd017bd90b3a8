"""Counting: right after every kind of operation, for one namespace and for all."""

import pytest

from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import OnExisting
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    failure,
    hand_back,
    own_shards,
    reschedule,
)
from duetime.testing.timers import make_timer


def tally(
    pending: int = 0, executing: int = 0, completed: int = 0, failed: int = 0, canceled: int = 0
) -> dict[TimerStatus, int]:
    return {
        TimerStatus.PENDING: pending,
        TimerStatus.EXECUTING: executing,
        TimerStatus.COMPLETED: completed,
        TimerStatus.FAILED: failed,
        TimerStatus.CANCELED: canceled,
    }


@pytest.mark.asyncio
class CountingContract:
    async def test_every_status_is_counted_even_at_zero(self, store: Store) -> None:
        assert await store.counts() == tally()
        assert await store.counts("default") == tally()
        assert await store.counts("nowhere") == tally()

    async def test_after_each_kind_of_write(self, store: Store) -> None:
        leases = await own_shards(store)
        timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(8)]
        await create(store, *timers, timers[0])
        assert await store.counts("default") == tally(pending=8)
        await create(store, timers[0], on_existing=OnExisting.REPLACE)
        assert await store.counts("default") == tally(pending=8)
        await store.change_if_pending(
            timers[1].key, Change(updated_at=at(1), delivery_id="d", execute_at=at(1))
        )
        assert await store.counts("default") == tally(pending=8)
        await store.cancel_if_pending(timers[7].key, at(1))
        await store.cancel_if_pending(timers[7].key, at(1))
        assert await store.counts("default") == tally(pending=7, canceled=1)
        await store.remove_if_pending(timers[6].key)
        assert await store.counts("default") == tally(pending=6, canceled=1)
        claims = await claim(store, leases, limit=5)
        assert await store.counts("default") == tally(pending=1, executing=5, canceled=1)
        await store.settle([completion(claims[0]), failure(claims[1]), completion(claims[0])])
        assert await store.counts("default") == tally(1, 3, 1, 1, 1)
        await store.settle([hand_back(claims[2]), reschedule(claims[3], at(9))])
        assert await store.counts("default") == tally(3, 1, 1, 1, 1)
        await store.recover(await own_shards(store))
        assert await store.counts("default") == tally(4, 0, 1, 1, 1)
        assert await store.prune(finished_before=at(99), limit=2) == 2
        counts = await store.counts("default")
        assert counts[TimerStatus.PENDING] == 4
        assert sum(counts.values()) == 5

    async def test_a_retry_counts_as_pending(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer(retry_policy=RetryPolicy()))
        (claimed,) = await claim(store, leases)
        await store.settle([failure(claimed)])
        assert await store.counts() == tally(pending=1)

    async def test_namespaces_are_counted_apart_and_together(self, store: Store) -> None:
        await store.add_namespace(Namespace("other", 4))
        leases = await own_shards(store)
        await create(store, make_timer("a", namespace="other", num_shards=4, execute_at=at(-1)))
        await create(store, make_timer("a"), make_timer("b"))
        (claimed,) = await claim(store, leases, until_inclusive=at(-1))
        assert await store.counts("other") == tally(executing=1)
        assert await store.counts("default") == tally(pending=2)
        assert await store.counts() == tally(pending=2, executing=1)
        await store.settle([completion(claimed)])
        assert await store.counts("other") == tally(completed=1)
        assert await store.counts() == tally(pending=2, completed=1)
