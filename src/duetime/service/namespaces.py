"""The namespaces this service accepts timers for."""

from collections.abc import Awaitable, Callable, Iterable, Iterator

from duetime.domain.errors import InvalidInput, NamespaceNotFound, SettingsError
from duetime.domain.namespace import (
    DEFAULT_SHARDS,
    Namespace,
    NamespaceOptions,
    WantedNamespace,
)
from duetime.ports.store import TimerStore
from duetime.service.namespace_limits import check_namespace


async def _nobody_to_tell() -> None:
    pass


class Namespaces:
    """Name to namespace. Every namespace in here exists in the store, with these shards.

    Other nodes may add namespaces and change options: what is not known here is looked up, and
    `refresh` brings the rest up to date.
    """

    def __init__(self, store: TimerStore) -> None:
        self._store = store
        self._by_name: dict[str, Namespace] = {}
        self.on_added: Callable[[], Awaitable[None]] = _nobody_to_tell
        """Called after a namespace was added, before its first timer is accepted: there may be
        new shards to own."""

    def __iter__(self) -> Iterator[Namespace]:
        return iter(self._by_name.values())

    def known(self, name: str) -> Namespace | None:
        """The namespace as it was last seen here."""
        return self._by_name.get(name)

    async def named(self, name: str) -> Namespace:
        """Raises `NamespaceNotFound`."""
        namespace = self._by_name.get(name)
        if namespace is None:
            await self.refresh()
            namespace = self._by_name.get(name)
        if namespace is None:
            raise NamespaceNotFound(name)
        return namespace

    async def refresh(self) -> None:
        """Learn what other nodes added and changed."""
        self._by_name = {each.name: each for each in await self._store.namespaces()}

    async def put(
        self,
        name: str,
        num_shards: int | None,
        change: Callable[[NamespaceOptions], NamespaceOptions],
    ) -> Namespace:
        """Create the namespace, or change the options of the one that exists.

        Raises `InvalidInput`, for one when it exists with another number of shards: timers are
        spread over the old number, so it stays.
        """
        await self.refresh()
        existing = self._by_name.get(name)
        before = NamespaceOptions() if existing is None else existing.options
        stored = await self._put(WantedNamespace(name, num_shards, change(before)))
        if existing is None:
            await self.on_added()
        self._by_name[name] = stored
        return stored

    async def add_all(self, configured: Iterable[WantedNamespace]) -> None:
        """What is configured comes to exist, at start-up, before the engine starts.

        Raises `SettingsError`.
        """
        for wanted in configured:
            try:
                await self._put(wanted)
            except InvalidInput as error:
                raise SettingsError(f"namespace '{wanted.name}': {error.message}") from None
        await self.refresh()

    async def _put(self, wanted: WantedNamespace) -> Namespace:
        namespace = Namespace(
            wanted.name,
            DEFAULT_SHARDS if wanted.num_shards is None else wanted.num_shards,
            NamespaceOptions() if wanted.options is None else wanted.options,
        )
        check_namespace(namespace)
        stored = await self._store.add_namespace(namespace)
        if wanted.num_shards is not None and stored.num_shards != wanted.num_shards:
            problem = f"is {stored.num_shards} since it was created, and stays so"
            raise InvalidInput("num_shards", problem)
        if wanted.options is not None and stored.options != wanted.options:
            return await self._store.change_namespace(wanted.name, wanted.options) or stored
        return stored
