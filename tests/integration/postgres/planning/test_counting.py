"""Totals are exact while counting is quick, and estimates beyond."""

import pytest

from duetime.domain.timer import TimerStatus
from duetime.ports.store import PageQuery
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.lists import COUNTED_EXACTLY
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
