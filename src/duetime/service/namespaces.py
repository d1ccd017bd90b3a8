"""The namespaces this service accepts timers for."""

from collections.abc import Iterable, Iterator

from duetime.domain.errors import NamespaceNotFound, SettingsError
from duetime.domain.keys import MAX_KEY_CHARACTERS, MAX_SHARDS, Namespace
from duetime.ports.store import TimerStore


class Namespaces:
    """Name to namespace. Every namespace in here exists in the store, with these shards."""

    def __init__(self, store: TimerStore) -> None:
        self._store = store
        self._by_name: dict[str, Namespace] = {}

    def __iter__(self) -> Iterator[Namespace]:
        return iter(self._by_name.values())

    def named(self, name: str) -> Namespace:
        """Raises `NamespaceNotFound`."""
        namespace = self._by_name.get(name)
        if namespace is None:
            raise NamespaceNotFound(name)
        return namespace

    async def add(self, namespace: Namespace) -> None:
        """Accept timers for the namespace from now on, creating it in the store if need be.

        Raises `SettingsError` when it cannot be, for one because it exists with another
        number of shards: timers are spread over the old number, so it stays.
        """
        _check(namespace)
        stored = await self._store.add_namespace(namespace)
        if stored.num_shards != namespace.num_shards:
            raise SettingsError(
                f"namespace '{namespace.name}' was created with {stored.num_shards} shards and "
                f"keeps them: set its number of shards to {stored.num_shards}, "
                f"not {namespace.num_shards}"
            )
        self._by_name[stored.name] = stored

    async def add_all(self, namespaces: Iterable[Namespace]) -> None:
        for namespace in namespaces:
            await self.add(namespace)


def _check(namespace: Namespace) -> None:
    name = namespace.name
    if not 1 <= len(name) <= MAX_KEY_CHARACTERS or "\0" in name:
        raise SettingsError(
            f"a namespace's name must have 1 to {MAX_KEY_CHARACTERS} characters: {name!r} has not"
        )
    if not 1 <= namespace.num_shards <= MAX_SHARDS:
        raise SettingsError(
            f"namespace '{name}' must have 1 to {MAX_SHARDS} shards, not {namespace.num_shards}"
        )
