"""A long transaction keeps the dead rows of all timers; no write wades through them.

The blocks that a statement touches are counted, not its time.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.engine.claim_progress import ClaimProgress
from duetime.ports.store import ClaimBatch, ClaimStart, Leases
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.claiming import BEFORE_EVERYTHING, claim_statement, claim_values
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.creating import CREATE_NEW, new_timer_values
from duetime.stores.postgres.settling import SETTLE, SETTLING_ROLE, settlement_values
from duetime.testing.store_contract.steps import at, completion, create, own_shards
from duetime.testing.timers import make_timer
from tests.integration.postgres.planning.plans import buffers_touched, run_explained

TIMERS = 500
ROUNDS = 8


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return new_options


@asynccontextmanager
async def snapshot_held(database: Connection) -> AsyncIterator[None]:
    async with database.transaction(isolation="repeatable_read"):
        await database.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        assert await database.fetchval("SELECT count(*) FROM pending_timers") == 0
        yield


class Rounds:
    """Creates, claims and settles, as an engine does, in rounds of a second each."""

    def __init__(self, store: PostgresStore, leases: Leases, planner: Connection) -> None:
        self._store = store
        self._leases = leases
        self._planner = planner
        self.progress = ClaimProgress()
        self.number = 0

    async def run(self) -> None:
        self.number += 1
        for part in range(5):
            await create(
                self._store,
                *(
                    make_timer(f"{self.number}-{part}-{n}", execute_at=at(self.number + n / TIMERS))
                    for n in range(TIMERS // 5)
                ),
            )
        for part in range(1, 6):
            batch = await self.claim(at(self.number + (part - 0.001) / 5))
            await self._store.settle([completion(claimed) for claimed in batch.claims])

    async def claim(self, until: Instant) -> ClaimBatch:
        start = self.progress.start(self._leases, until, {})
        batch = await self._store.claim_due(
            self._leases, now=until, until_inclusive=until, limit=1_000, start=start
        )
        self.progress.claimed(self._leases, until, batch)
        return batch

    async def blocks_of_a_claim(self) -> int:
        until = at(self.number + 1)
        start = self.progress.start(self._leases, until, {})
        assert start is not None
        return await self.blocks_from(start)

    async def blocks_from(self, start: ClaimStart) -> int:
        until = at(self.number + 1)
        values = claim_values(self._leases, until, until, 100, start)
        plan = await run_explained(self._planner, claim_statement(len(self._leases)), *values)
        return buffers_touched(plan)


async def test_a_claim_touches_no_more_blocks_however_many_timers_were_claimed(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    rounds = Rounds(store, await own_shards(store), planner)
    async with snapshot_held(database):
        await rounds.run()
        first = await rounds.blocks_of_a_claim()
        for _ in range(ROUNDS):
            await rounds.run()
        last = await rounds.blocks_of_a_claim()
        assert (await store.counts())[TimerStatus.COMPLETED] == (ROUNDS + 1) * TIMERS
    assert last <= 1.5 * first


async def test_creates_and_settlements_touch_no_more_blocks_either(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    rounds = Rounds(store, await own_shards(store), planner)

    async def blocks() -> tuple[int, int]:
        timers = [make_timer(f"at-{rounds.number}-{n}", execute_at=at(500)) for n in range(50)]
        values = new_timer_values(timers, look=True)
        assert values is not None
        creating = await run_explained(planner, CREATE_NEW, *values)
        await create(store, *(make_timer(f"in-{rounds.number}", execute_at=at(rounds.number + 1)),))
        claims = (await rounds.claim(at(rounds.number + 1))).claims
        assert len(claims) == 1
        settling = settlement_values([completion(claimed) for claimed in claims])
        plan = await run_explained(planner, SETTLE, SETTLING_ROLE, *settling)
        return buffers_touched(creating), buffers_touched(plan)

    async with snapshot_held(database):
        await rounds.run()
        first = await blocks()
        for _ in range(ROUNDS):
            await rounds.run()
        last = await blocks()
    assert last[0] <= 1.5 * first[0]
    assert last[1] <= 1.5 * first[1]


async def test_a_burst_of_one_instant_is_claimed_without_reading_it_again_and_again(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    leases = await own_shards(store)
    progress = ClaimProgress()

    async def blocks_of_a_claim() -> int:
        start = progress.start(leases, at(9), {})
        assert start is not None
        values = claim_values(leases, at(9), at(9), 100, start)
        return buffers_touched(await run_explained(planner, claim_statement(16), *values))

    async with snapshot_held(database):
        await create(store, *(make_timer(f"t{n}", execute_at=at(5)) for n in range(4_000)))
        blocks: list[int] = []
        for _ in range(30):
            start = progress.start(leases, at(9), {})
            batch = await store.claim_due(
                leases, now=at(9), until_inclusive=at(9), limit=100, start=start
            )
            assert len(batch.claims) == 100
            progress.claimed(leases, at(9), batch)
            blocks.append(await blocks_of_a_claim())
    assert max(blocks[-5:]) <= 1.5 * max(blocks[:5])


async def test_one_early_timer_makes_only_its_own_shard_look_back(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    leases = await own_shards(store)
    rounds = Rounds(store, leases, planner)
    async with snapshot_held(database):
        for _ in range(ROUNDS):
            await rounds.run()
        await rounds.claim(at(rounds.number + 1))
        early = make_timer("early", execute_at=at(1))
        await create(store, early)
        start = rounds.progress.start(leases, at(rounds.number + 1), {early.shard: at(1)})
        assert start is not None
        one = await rounds.blocks_from(start)
        every = await rounds.blocks_from(
            ClaimStart(start.after_exclusive, dict.fromkeys(leases, BEFORE_EVERYTHING))
        )
    assert 4 * one < every


async def test_no_row_of_the_ledger_becomes_a_long_chain_of_dead_versions(
    store: PostgresStore, database: Connection
) -> None:
    """Each booking leaves a dead version, and the next one of the same row reads past them all."""
    for n in range(400):
        timer = make_timer(f"t{n}")
        await create(store, timer)
        await store.remove_if_pending(timer.key)
    assert await database.fetchval("SELECT sum(accepted + removed)::int FROM ledger") == 800
    assert await database.fetchval("SELECT max(accepted + removed) FROM ledger") <= 20
