import pytest

from duetime.domain.errors import NamespaceNotFound, SettingsError
from duetime.domain.namespace import Namespace
from duetime.service.namespaces import Namespaces
from duetime.stores.memory import MemoryStore


async def test_an_added_namespace_is_found() -> None:
    namespaces = Namespaces(MemoryStore())
    await namespaces.add_all([Namespace("default"), Namespace("billing", 4)])
    assert namespaces.named("billing").num_shards == 4
    assert list(namespaces) == [Namespace("default", 16), Namespace("billing", 4)]
    with pytest.raises(NamespaceNotFound, match="'other'"):
        namespaces.named("other")


async def test_another_number_of_shards_is_refused_with_what_to_do() -> None:
    store = MemoryStore()
    await Namespaces(store).add(Namespace("default", 16))
    with pytest.raises(SettingsError, match="set its number of shards to 16, not 32"):
        await Namespaces(store).add(Namespace("default", 32))


@pytest.mark.parametrize(
    "namespace",
    [
        Namespace(""),
        Namespace("x" * 256),
        Namespace("a\0b"),
        Namespace("a", 0),
        Namespace("a", 4097),
    ],
)
async def test_impossible_namespaces_are_refused(namespace: Namespace) -> None:
    with pytest.raises(SettingsError):
        await Namespaces(MemoryStore()).add(namespace)
