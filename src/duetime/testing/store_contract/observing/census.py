"""Timers counted by namespace, right after every kind of write."""

from collections.abc import Sequence

import pytest

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Redrive
from duetime.ports.inspection import DueCount, NamespaceCounts
from duetime.ports.store import OnExisting
from duetime.testing.store_contract.steps import (
    Reopen,
    Store,
    at,
    brought_to,
    claim,
    completion,
    create,
    failure,
    hand_back,
    own_shards,
    reschedule,
)
from duetime.testing.timers import make_timer

MANY = 1_000


async def counted(store: Store, *, most_names: int = MANY) -> NamespaceCounts:
    counts = await store.count_by_namespace(most_names=most_names)
    assert counts is not None, "the store has yet to count its timers"
    return counts


async def pending_and_failed(store: Store, namespace: str = "default") -> tuple[int, int]:
    counts = await counted(store)
    return counts.pending.get(namespace, 0), counts.failed.get(namespace, 0)


async def due(
    store: Store, bounds: Sequence[Instant], namespaces: Sequence[str] | None = None
) -> list[int]:
    counts = await store.count_due(bounds, most=1_000, namespaces=namespaces)
    assert counts is not None
    assert all(each.is_all for each in counts)
    return [each.timers for each in counts]


@pytest.mark.asyncio
class CensusContract:
    async def test_counts_follow_every_write(self, store: Store) -> None:
        leases = await own_shards(store)
        assert await pending_and_failed(store) == (0, 0)

        await create(store, *(make_timer(f"t{n}") for n in range(8)))
        await create(store, make_timer("t0"))
        await create(store, make_timer("t1"), on_existing=OnExisting.REPLACE)
        assert await pending_and_failed(store) == (8, 0)

        claims = await claim(store, leases, limit=6)
        assert await pending_and_failed(store) == (2, 0)

        await store.settle([completion(claims[0]), *map(failure, claims[1:4])])
        assert await pending_and_failed(store) == (2, 3)
        await store.settle([reschedule(claims[4]), hand_back(claims[5])])
        assert await pending_and_failed(store) == (4, 3)

        keys = [TimerKey(each.namespace, each.id) for each in claims]
        await store.redrive_if_failed([Redrive(key=keys[1], delivery_id="again")], at(2))
        assert await pending_and_failed(store) == (5, 2)
        await store.cancel_if_pending(keys[1], at(3))
        await store.cancel_if_pending(keys[1], at(3))
        await store.remove_if_pending(keys[4])
        assert await pending_and_failed(store) == (3, 2)

    async def test_counts_follow_recovery_restoring_and_pruning(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("left"))
        await claim(store, leases)
        failed = await brought_to(store, leases, make_timer("failed"), TimerStatus.FAILED)
        await store.recover(await own_shards(store))
        assert await pending_and_failed(store) == (1, 1)

        await store.prune(finished_before=at(10), limit=10)
        assert await pending_and_failed(store) == (1, 0)
        await store.restore([failed, make_timer("pending")])
        assert await pending_and_failed(store) == (2, 1)
        await store.prune(finished_before=at(10), limit=10, namespace="default")
        assert await pending_and_failed(store) == (2, 0)

    async def test_namespaces_are_counted_apart(self, store: Store) -> None:
        for name in ("other", "third"):
            await store.add_namespace(Namespace(name, 16))
        await create(store, make_timer("a"), make_timer("b", namespace="other"))
        await create(store, make_timer("c", namespace="other"), make_timer("d", namespace="third"))

        pending = (await counted(store)).pending
        assert {name: count for name, count in pending.items() if count} == {
            "default": 1,
            "other": 2,
            "third": 1,
        }

    async def test_namespaces_beyond_the_limit_are_counted_together(self, store: Store) -> None:
        leases = await own_shards(store)
        await brought_to(store, leases, make_timer("f"), TimerStatus.FAILED)
        for name in ("n1", "n2", "n3"):
            await store.add_namespace(Namespace(name, 16))
            await create(store, make_timer("a", namespace=name))

        counts = await counted(store, most_names=2)

        assert sum(counts.pending.values()) == 3
        assert sum(counts.failed.values()) == 1
        assert set(counts.pending) <= {"default", "n1", None}

    async def test_a_removed_namespace_is_not_counted(self, store: Store) -> None:
        await store.add_namespace(Namespace("gone", 16))
        await create(store, *(make_timer(f"t{n}", namespace="gone") for n in range(3)))
        await store.change_namespace("gone", NamespaceOptions(deleting=True))
        await store.remove_pending("gone", limit=2)
        assert await pending_and_failed(store, "gone") == (1, 0)
        await store.remove_pending("gone", limit=2)
        assert await store.remove_namespace("gone")

        assert await pending_and_failed(store, "gone") == (0, 0)

    async def test_counts_outlive_the_process(self, store: Store, reopen: Reopen) -> None:
        leases = await own_shards(store)
        await brought_to(store, leases, make_timer("f"), TimerStatus.FAILED)
        await create(store, make_timer("a"), make_timer("b"))

        assert await pending_and_failed(await reopen()) == (2, 1)

    async def test_a_namespace_that_is_gone_is_not_counted(self, store: Store) -> None:
        doomed = Namespace("doomed", 16, NamespaceOptions(deleting=True))
        await store.add_namespace(doomed)
        await create(store, make_timer("a"), make_timer("b", namespace="doomed"))
        await counted(store)
        await store.remove_pending("doomed", limit=9)
        assert await store.remove_namespace("doomed")

        counts = await counted(store)

        assert counts.pending == {"default": 1}
        assert "doomed" not in counts.failed

    async def test_executing_and_overdue_timers_are_counted(self, store: Store) -> None:
        leases = await own_shards(store)
        await store.add_namespace(Namespace("other", 16))
        await create(store, *(make_timer(f"e{n}", execute_at=at(-9)) for n in range(3)))
        await claim(store, leases, until_inclusive=at(-9))
        await create(store, *(make_timer(f"o{n}", execute_at=at(n)) for n in range(4)))
        await create(store, make_timer("o", namespace="other", execute_at=at(-5)))

        live = await store.count_live(at(2), most=100)

        assert live is not None
        assert {name: count for name, count in live.executing.items() if count} == {"default": 3}
        assert live.overdue == {"default": 2, "other": 1}
        assert live.are_all

    async def test_a_store_may_stop_counting_overdue_timers(self, store: Store) -> None:
        await create(store, *(make_timer(f"o{n}", execute_at=at(n)) for n in range(9)))

        live = await store.count_live(at(100), most=5)

        assert live is not None
        assert live.are_all == (sum(live.overdue.values()) == 9)
        assert sum(live.overdue.values()) >= 5

    async def test_timers_are_counted_by_the_span_in_which_they_fall_due(
        self, store: Store
    ) -> None:
        await store.add_namespace(Namespace("other", 16))
        await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(1, 31)))
        await create(store, make_timer("o", namespace="other", execute_at=at(15)))
        await store.cancel_if_pending(make_timer("t12").key, at(0))
        bounds = [at(5), at(10), at(20), at(25)]

        assert await due(store, bounds) == [5, 10, 5]
        assert await due(store, bounds, ["other"]) == [0, 1, 0]
        assert await due(store, bounds, ["default", "other"]) == [5, 10, 5]
        assert await due(store, bounds, ["absent"]) == [0, 0, 0]

    async def test_a_span_is_counted_up_to_a_limit(self, store: Store) -> None:
        await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(1, 10)))

        for namespaces in (None, ["default"]):
            counts = await store.count_due([at(0), at(6), at(20)], most=4, namespaces=namespaces)
            assert counts == [DueCount(4, is_all=False), DueCount(4, is_all=True)]

    async def test_a_timer_that_is_tried_again_falls_due_at_its_next_attempt(
        self, store: Store
    ) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("again", execute_at=at(1), retry_policy=RetryPolicy()))
        (claimed,) = await claim(store, leases, until_inclusive=at(1))
        retry = failure(claimed, answered_at=at(2))
        assert await store.settle([retry]) == [True]
        bounds = [at(2), retry.due_at, Instant(retry.due_at + 1)]

        for namespaces in (None, ["default"]):
            assert await due(store, bounds, namespaces) == [0, 1]

    async def test_a_timer_that_is_claimed_early_does_not_fall_due_any_more(
        self, store: Store
    ) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("a", execute_at=at(5)), make_timer("b", execute_at=at(6)))
        await claim(store, leases, until_inclusive=at(5))

        for namespaces in (None, ["default"]):
            assert await due(store, [at(1), at(10)], namespaces) == [1]
