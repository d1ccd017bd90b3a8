"""Reads that have to be quick do not wait behind lists that may take long."""

import asyncio
from threading import Event

import pytest

from duetime.ports.store import Existence, Page, PageQuery
from duetime.stores.sqlite import SqliteStore, lists
from duetime.stores.sqlite.connections import Statements
from duetime.testing.store_contract.steps import create
from duetime.testing.timers import make_timer
from tests.polling import PATIENCE_SECONDS


async def test_a_repeated_create_does_not_wait_for_a_list(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creates share batches, so that one that waits would hold up all others."""
    begun, ended = Event(), Event()

    def read_page(statements: Statements, query: PageQuery) -> Page:
        begun.set()
        ended.wait(PATIENCE_SECONDS)
        return Page([], 0)

    monkeypatch.setattr(lists, "read_page", read_page)
    await create(store, make_timer("one"))
    listing = asyncio.create_task(store.page(PageQuery(namespace="default")))
    await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    try:
        (repeated,) = await create(store, make_timer("one"))
        assert not listing.done()
    finally:
        ended.set()
        await listing
    assert repeated.existence is Existence.EXISTING
