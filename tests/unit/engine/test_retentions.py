"""Prunings that give every namespace its retention."""

from msgspec.structs import replace

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.engine.pruning.retentions import Retention, Retentions
from duetime.stores.memory import MemoryStore


def kept(name: str, seconds: int | None = None) -> Namespace:
    return Namespace(name, options=NamespaceOptions(retention_seconds=seconds))


async def retentions_of(*namespaces: Namespace, service: float | None) -> list[Retention]:
    store = MemoryStore()
    for namespace in namespaces:
        await store.add_namespace(namespace)
    retentions = Retentions(service)
    await retentions.refresh(store)
    return retentions.all()


async def test_namespaces_of_one_retention_are_pruned_together() -> None:
    assert await retentions_of(kept("a"), kept("b", 600), service=600) == [Retention(None, 600)]
    assert await retentions_of(kept("a"), kept("b"), service=None) == []
    assert await retentions_of(service=600) == []


async def test_all_are_pruned_by_the_longest_retention_and_others_by_their_own() -> None:
    namespaces = [kept("a"), kept("b", 60), kept("c", 9_000), kept("d", 30)]
    assert await retentions_of(*namespaces, service=600) == [
        Retention(None, 9_000),
        Retention("a", 600),
        Retention("b", 60),
        Retention("d", 30),
    ]


async def test_nothing_is_pruned_together_when_a_namespace_is_kept_for_ever() -> None:
    ours = [Retention("b", 60)]
    assert await retentions_of(kept("a", 0), kept("b", 60), service=60) == ours
    assert await retentions_of(kept("a"), kept("b", 60), service=None) == ours


async def test_changes_and_deletions_take_effect() -> None:
    store = MemoryStore()
    for namespace in (kept("a", 60), kept("b", 0), kept("c", 600)):
        await store.add_namespace(namespace)
    retentions = Retentions(None)
    await retentions.refresh(store)
    assert retentions.all() == [Retention("a", 60), Retention("c", 600)]
    assert retentions.of(None) is None

    await store.change_namespace("a", NamespaceOptions(retention_seconds=30))
    deleting = replace(kept("b", 0).options, deleting=True)
    await store.change_namespace("b", deleting)
    await retentions.refresh(store)
    assert retentions.all() == [Retention("c", 600), Retention("a", 30)]

    await store.remove_namespace("b")
    await retentions.refresh(store)
    assert retentions.all() == [Retention(None, 600), Retention("a", 30)]
    assert retentions.of("b") is None
    assert retentions.of("a") == Retention("a", 30)

    await store.add_namespace(kept("b", 900))
    await retentions.refresh(store)
    assert retentions.of(None) == Retention(None, 900)
