"""The counts of attempts that were in time or late."""

import asyncio
from collections.abc import Mapping

import pytest

from duetime.domain.lateness.objective import InTimeOrLate, LatenessCount
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.testing.store_contract.durability import durable
from duetime.testing.store_contract.steps import Reopen, Store

HOUR = 500_000


async def sums(store: Store, *names: str, since: int = HOUR) -> Mapping[str, InTimeOrLate]:
    asked = dict.fromkeys(names, since)
    return await store.lateness_ledger.sum_lateness(asked, until_exclusive=HOUR + 10)


@pytest.mark.asyncio
class LatenessContract:
    async def test_counts_of_a_namespace_are_summed(self, store: Store, reopen: Reopen) -> None:
        ledger = store.lateness_ledger
        await ledger.add_lateness([LatenessCount("a", HOUR, 5, 1), LatenessCount("b", HOUR, 0, 2)])
        await ledger.add_lateness([LatenessCount("a", HOUR, 10**12, 3)])
        await ledger.add_lateness([LatenessCount("a", HOUR + 1, 1, 0)])
        await ledger.add_lateness([])
        kept = await durable(store, reopen)
        assert await sums(kept, "a", "b", "absent") == {
            "a": InTimeOrLate(10**12 + 6, 4),
            "b": InTimeOrLate(0, 2),
        }
        assert await sums(kept) == {}

    async def test_nodes_add_at_the_same_time(self, store: Store) -> None:
        names = [f"namespace {number}" for number in range(20)]
        adds = [names, names[::-1]] * 10
        await asyncio.gather(
            *(
                store.lateness_ledger.add_lateness([LatenessCount(n, HOUR, 1, 2) for n in each])
                for each in adds
            )
        )
        assert await sums(store, *names) == dict.fromkeys(names, InTimeOrLate(20, 40))

    async def test_each_namespace_is_summed_over_its_own_hours(self, store: Store) -> None:
        ledger = store.lateness_ledger
        names = ('"quoted"', "günther")
        await ledger.add_lateness(
            [LatenessCount(name, HOUR + number, 1, 0) for name in names for number in range(9)]
        )
        since = {names[0]: HOUR + 2, names[1]: HOUR + 5}
        assert await ledger.sum_lateness(since, until_exclusive=HOUR + 7) == {
            names[0]: InTimeOrLate(5, 0),
            names[1]: InTimeOrLate(2, 0),
        }

    async def test_earlier_hours_are_forgotten_a_few_at_a_time(self, store: Store) -> None:
        ledger = store.lateness_ledger
        counts = [LatenessCount("a", HOUR + number, 1, 0) for number in range(5)]
        await ledger.add_lateness(counts)
        forgotten = [await ledger.forget_lateness(HOUR + 3, limit=2) for _ in range(3)]
        assert forgotten == [2, 1, 0]
        assert await sums(store, "a") == {"a": InTimeOrLate(2, 0)}

    async def test_counts_go_with_their_namespace(self, store: Store, reopen: Reopen) -> None:
        names = ("gone", "kept")
        for name in names:
            await store.add_namespace(Namespace(name))
        counts = [LatenessCount(name, HOUR, 1, 1) for name in names]
        await store.lateness_ledger.add_lateness(counts)
        assert not await store.remove_namespace("gone")
        assert set(await sums(store, *names)) == set(names)
        await store.change_namespace("gone", NamespaceOptions(deleting=True))
        assert await store.remove_namespace("gone")
        await store.add_namespace(Namespace("gone"))
        assert set(await sums(await durable(store, reopen), *names)) == {"kept"}
