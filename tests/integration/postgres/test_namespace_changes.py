"""Nodes read the namespaces that changed, however many there are."""

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.stores.postgres import PostgresOptions, PostgresStore
from tests.integration.postgres.held import held

ADD = "INSERT INTO namespaces (name, num_shards) VALUES ($1, 16)"
ONE_AT_A_TIME = NamespaceOptions(concurrency=1)


async def test_only_what_changed_is_read(store: PostgresStore) -> None:
    for n in range(50):
        await store.add_namespace(Namespace(f"tenant-{n}"))
    first = await store.namespaces_changed(None)
    assert (len(first.namespaces), first.are_all) == (51, True)
    nothing = await store.namespaces_changed(first.mark)
    assert (list(nothing.namespaces), nothing.are_all) == ([], False)
    new = await store.add_namespace(Namespace("new"))
    changed = await store.change_namespace("tenant-3", ONE_AT_A_TIME)
    found = await store.namespaces_changed(nothing.mark)
    assert sorted(each.name for each in found.namespaces) == ["new", "tenant-3"]
    assert new in found.namespaces
    assert changed in found.namespaces
    assert list((await store.namespaces_changed(found.mark)).namespaces) == []


async def test_a_namespace_committed_after_a_later_one_was_read_is_not_missed(
    store: PostgresStore, options: PostgresOptions
) -> None:
    first = await store.namespaces_changed(None)
    async with held(options, ADD, "early") as write:
        await store.add_namespace(Namespace("late"))
        second = await store.namespaces_changed(first.mark)
        assert [each.name for each in second.namespaces] == ["late"]
        await write.commit()
    third = await store.namespaces_changed(second.mark)
    assert "early" in [each.name for each in third.namespaces]
