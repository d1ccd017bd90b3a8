"""A long transaction keeps dead rows of claimed timers; claims begin after them."""

import pytest

from duetime.domain.instants import Instant
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.claiming import BEFORE_EVERYTHING, claim_statement
from duetime.stores.postgres.connections import Connection
from duetime.testing.store_contract.steps import at, claim, completion, create, own_shards
from duetime.testing.timers import make_timer
from tests.integration.postgres.planning.plans import buffers_touched, run_explained


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return new_options


async def test_rows_of_timers_claimed_long_ago_are_not_read_again(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    leases = await own_shards(store)

    async def blocks_read(since: int) -> int:
        values = [list(leases), list(leases.values()), at(100), 100, at(100), Instant(since)]
        plan = await run_explained(planner, claim_statement(16), *values)
        return buffers_touched(plan)

    async with database.transaction(isolation="repeatable_read"):
        assert await database.fetchval("SELECT count(*) FROM pending_timers") == 0
        await create(
            store, *(make_timer(f"old-{n}", execute_at=at(n / 1_000)) for n in range(3_000))
        )
        await store.settle([completion(claimed) for claimed in await claim(store, leases)])
        await create(store, *(make_timer(f"new-{n}", execute_at=at(99)) for n in range(10)))
        assert 3 * await blocks_read(at(40)) < await blocks_read(BEFORE_EVERYTHING)
