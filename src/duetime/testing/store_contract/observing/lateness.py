"""The counts of attempts that were in time or late."""

import asyncio

import pytest

from duetime.domain.lateness.objective import LatenessCount
from duetime.testing.store_contract.durability import durable
from duetime.testing.store_contract.steps import Reopen, Store

HOUR = 500_000


@pytest.mark.asyncio
class LatenessContract:
    async def test_counts_of_a_namespace_and_hour_are_summed(
        self, store: Store, reopen: Reopen
    ) -> None:
        ledger = store.lateness_ledger
        await ledger.add_lateness([LatenessCount("a", HOUR, 5, 1), LatenessCount("b", HOUR, 0, 2)])
        await ledger.add_lateness([LatenessCount("a", HOUR, 10**12, 3)])
        await ledger.add_lateness([LatenessCount("a", HOUR + 1, 1, 0)])
        await ledger.add_lateness([])
        kept = await durable(store, reopen)
        assert set(await kept.lateness_ledger.lateness_since(HOUR)) == {
            LatenessCount("a", HOUR, 10**12 + 5, 4),
            LatenessCount("b", HOUR, 0, 2),
            LatenessCount("a", HOUR + 1, 1, 0),
        }

    async def test_nodes_add_at_the_same_time(self, store: Store) -> None:
        names = [f"namespace {number}" for number in range(20)]
        adds = [names, names[::-1]] * 10
        await asyncio.gather(
            *(
                store.lateness_ledger.add_lateness([LatenessCount(n, HOUR, 1, 2) for n in each])
                for each in adds
            )
        )
        assert set(await store.lateness_ledger.lateness_since(HOUR)) == {
            LatenessCount(name, HOUR, 20, 40) for name in names
        }

    async def test_earlier_hours_are_left_out_and_forgotten(self, store: Store) -> None:
        ledger = store.lateness_ledger
        counts = [LatenessCount("a", HOUR + number, 1, 0) for number in range(5)]
        await ledger.add_lateness(counts)
        assert set(await ledger.lateness_since(HOUR + 3)) == set(counts[3:])
        await ledger.forget_lateness(HOUR + 2)
        assert set(await ledger.lateness_since(0)) == set(counts[2:])
