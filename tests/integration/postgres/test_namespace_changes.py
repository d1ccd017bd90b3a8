"""Nodes read the namespaces that changed, however many there are."""

import asyncio

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.ports.store import NamespaceChanges
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import ANY_PLAN, connected
from tests.integration.postgres.held import PATIENCE_SECONDS, held

ADD = "INSERT INTO namespaces (name, num_shards) VALUES ($1, 16)"
ONE_AT_A_TIME = NamespaceOptions(concurrency=1)


async def until_nothing_is_new(store: PostgresStore, mark: str) -> NamespaceChanges:
    """Transactions of other tests on the server make the store answer again what it answered."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (changes := await store.namespaces_changed(mark)).namespaces:
            mark = changes.mark
    return changes


async def test_only_what_changed_is_read(store: PostgresStore) -> None:
    for n in range(50):
        await store.add_namespace(Namespace(f"tenant-{n}"))
    first = await store.namespaces_changed(None)
    assert (len(first.namespaces), first.are_all) == (51, True)
    nothing = await until_nothing_is_new(store, first.mark)
    assert not nothing.are_all
    new = await store.add_namespace(Namespace("new"))
    changed = await store.change_namespace("tenant-3", ONE_AT_A_TIME)
    found = await store.namespaces_changed(nothing.mark)
    assert not found.are_all
    assert sorted(each.name for each in found.namespaces) == ["new", "tenant-3"]
    assert new in found.namespaces
    assert changed in found.namespaces
    await until_nothing_is_new(store, found.mark)


async def test_a_namespace_committed_after_a_later_one_was_read_is_not_missed(
    store: PostgresStore, options: PostgresOptions
) -> None:
    first = await store.namespaces_changed(None)
    async with held(options, ADD, "early") as write:
        await store.add_namespace(Namespace("late"))
        second = await store.namespaces_changed(first.mark)
        assert "late" in [each.name for each in second.namespaces]
        assert "early" not in [each.name for each in second.namespaces]
        await write.commit()
    third = await store.namespaces_changed(second.mark)
    assert "early" in [each.name for each in third.namespaces]


async def test_a_dump_of_a_server_with_more_transactions_is_read_once(
    new_options: PostgresOptions,
) -> None:
    """The restored rows have the numbers of transactions that this server has yet to reach."""
    store = PostgresStore(new_options)
    await store.open()
    for n in range(5):
        await store.add_namespace(Namespace(f"tenant-{n}"))
    await store.close()
    async with connected(new_options, ANY_PLAN) as connection:
        await connection.execute("ALTER TABLE namespaces DISABLE TRIGGER namespaces_changed")
        await connection.execute("UPDATE namespaces SET changed_in = '9000000000000'")
        await connection.execute("ALTER TABLE namespaces ENABLE TRIGGER namespaces_changed")
    await store.open()
    first = await store.namespaces_changed(None)
    assert len(first.namespaces) == 5
    await until_nothing_is_new(store, first.mark)
    await store.close()
