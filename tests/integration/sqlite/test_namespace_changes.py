"""The service reads the namespaces that changed, however many there are."""

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.stores.sqlite import SqliteStore

ONE_AT_A_TIME = NamespaceOptions(concurrency=1)


async def test_only_what_changed_is_read(store: SqliteStore) -> None:
    for n in range(50):
        await store.add_namespace(Namespace(f"tenant-{n}"))
    first = await store.namespaces_changed(None)
    assert first.are_all
    nothing = await store.namespaces_changed(first.mark)
    assert (list(nothing.namespaces), nothing.are_all) == ([], False)
    new = await store.add_namespace(Namespace("new"))
    await store.change_namespace("tenant-3", NamespaceOptions())
    changed = await store.change_namespace("tenant-3", ONE_AT_A_TIME)
    found = await store.namespaces_changed(nothing.mark)
    assert not found.are_all
    assert sorted(found.namespaces, key=lambda each: each.name) == [new, changed]
    assert not (await store.namespaces_changed(found.mark)).namespaces


async def test_a_mark_from_before_the_file_was_opened_again_asks_for_all(
    store: SqliteStore,
) -> None:
    mark = (await store.namespaces_changed(None)).mark
    await store.close()
    await store.open()
    changes = await store.namespaces_changed(mark)
    assert changes.are_all
    assert list(changes.namespaces) == list(await store.namespaces())
