"""Totals are exact while counting is quick, and estimates beyond."""

import asyncio

import pytest

from duetime.domain.timer import TimerStatus
from duetime.ports.security import AuditQuery
from duetime.ports.store import PageQuery
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.lists import COUNTED_EXACTLY
from tests.integration.postgres.held import PATIENCE_SECONDS, held
from tests.integration.postgres.planning import table_states


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return new_options


async def test_a_small_total_is_exact(store: PostgresStore, database: Connection) -> None:
    await table_states.filled(store, database)
    page = await store.page(PageQuery(namespace="default", status=TimerStatus.COMPLETED))
    assert page.total_is_estimated is False
    assert page.total == (table_states.FINISHED + 2) // 3 - 1


async def test_a_large_total_is_estimated(store: PostgresStore, database: Connection) -> None:
    await table_states.filled_and_analysed(store, database)
    page = await store.page(PageQuery(namespace="default", status=TimerStatus.PENDING))
    assert page.total_is_estimated is True
    assert abs(page.total - table_states.PENDING) < table_states.PENDING / 10
    counts = await store.counts("default")
    assert counts[TimerStatus.PENDING] == page.total
    assert sum(counts.values()) == page.total + table_states.FINISHED
    assert await store.counts() == counts


async def test_an_estimate_is_never_less_than_the_timers_counted(
    store: PostgresStore, database: Connection
) -> None:
    """The planner knows nothing about the table yet."""
    await table_states.filled(store, database)
    page = await store.page(PageQuery(namespace="default"))
    assert page.total_is_estimated is True
    assert page.total >= COUNTED_EXACTLY + table_states.FINISHED


async def test_a_page_far_beyond_an_estimated_end_is_empty(
    store: PostgresStore, database: Connection
) -> None:
    await table_states.filled_and_analysed(store, database)
    query = PageQuery(namespace="default", offset=table_states.PENDING * 2)
    assert (await store.page(query)).timers == []


async def test_unfinished_timers_are_counted_exactly_as_far_as_asked(
    store: PostgresStore, database: Connection
) -> None:
    """The planner still knows the timers that are gone."""
    await table_states.filled_and_analysed(store, database)
    await database.execute(
        "DELETE FROM pending_timers WHERE ctid IN (SELECT ctid FROM pending_timers LIMIT $1)",
        table_states.PENDING * 2 // 5,
    )
    left = await database.fetchval("SELECT count(*) FROM pending_timers")
    estimated = await store.count_unfinished("default", exact_up_to=1_000)
    assert estimated > 1_000
    assert estimated != left
    for exact_up_to in (left, 10 * left):
        assert await store.count_unfinished("default", exact_up_to=exact_up_to) == left


async def test_unfinished_timers_are_counted_while_all_lists_wait(
    store: PostgresStore, options: PostgresOptions, database: Connection
) -> None:
    async with held(options, "LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE") as lock:
        searches = [
            asyncio.create_task(store.security.audit_entries(AuditQuery())) for _ in range(30)
        ]
        await lock.is_waited_for(database)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await store.count_unfinished("default", exact_up_to=10) == 0
        assert not any(search.done() for search in searches)
        await lock.roll_back()
        await asyncio.gather(*searches)
