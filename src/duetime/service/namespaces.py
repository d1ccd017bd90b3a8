"""The namespaces this service accepts timers for."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

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
        self._reading = asyncio.Lock()
        self._reads_begun = 0
        self._last_read = 0
        self.on_added: Callable[[], Awaitable[None]] = _nobody_to_tell
        """Called when there is a namespace that was not known here, before its first timer is
        accepted: there may be new shards to own. When it fails the namespace stays unknown, and
        the next look at the store calls it again."""

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
        begun_before = self._reads_begun
        async with self._reading:
            # Whoever waited while somebody else began to read, and did, has been answered by that.
            if self._last_read <= begun_before:
                await self._read()

    async def put(
        self,
        name: str,
        num_shards: int | None,
        change: Callable[[NamespaceOptions], NamespaceOptions],
    ) -> Namespace:
        """Create the namespace, or change the options of the one that exists.

        `change` may be called again with what it answered. Of two nodes that change options at
        the same time one goes last, and what it answers holds. Raises `InvalidInput`, for one
        when the namespace exists with another number of shards: timers are spread over the old
        number, so it stays.
        """
        async with self._reading:
            await self._read()
            existing = self._by_name.get(name)
            if existing is None:
                new = Namespace(
                    name,
                    DEFAULT_SHARDS if num_shards is None else num_shards,
                    change(NamespaceOptions()),
                )
                check_namespace(new)
                # Another node may have been faster; then its namespace is the one to change.
                existing = await self._store.add_namespace(new)
                await self._read()
            _check_shards(existing, num_shards)
            changed = Namespace(name, existing.num_shards, change(existing.options))
            check_namespace(changed)
            if changed != existing:
                await self._store.change_namespace(name, changed.options)
                self._by_name[name] = changed
            return changed

    async def provide(self, names: Collection[str]) -> None:
        """Create those of the namespaces that are not there, for doors at which nobody has to ask
        for one first. Their names have been checked."""
        if all(name in self._by_name for name in names):
            return
        async with self._reading:
            await self._read()
            missing = [name for name in names if name not in self._by_name]
            for name in missing:
                await self._store.add_namespace(Namespace(name, DEFAULT_SHARDS))
            if missing:
                await self._read()

    async def add_all(self, configured: Iterable[WantedNamespace]) -> None:
        """What is configured comes to exist, at start-up, before the engine starts.

        Raises `SettingsError` with a line for each namespace that cannot be; then none of those
        that could not be checked was created.
        """
        wanted = list(configured)
        _tell_all(_problem_of(each) for each in wanted)
        _tell_all([await self._add(each) for each in wanted])
        async with self._reading:
            self._by_name = {each.name: each for each in await self._store.namespaces()}

    async def _add(self, wanted: WantedNamespace) -> str | None:
        """What is wrong with the namespace that the store holds."""
        stored = await self._store.add_namespace(_namespace_of(wanted))
        try:
            _check_shards(stored, wanted.num_shards)
        except InvalidInput as error:
            return _line(wanted, error)
        if wanted.options is not None and stored.options != wanted.options:
            await self._store.change_namespace(wanted.name, wanted.options)
        return None

    async def _read(self) -> None:
        self._reads_begun += 1
        number = self._reads_begun
        found = {each.name: each for each in await self._store.namespaces()}
        if found.keys() - self._by_name.keys():
            await self.on_added()
        self._by_name = found
        self._last_read = number


def _namespace_of(wanted: WantedNamespace) -> Namespace:
    return Namespace(
        wanted.name,
        DEFAULT_SHARDS if wanted.num_shards is None else wanted.num_shards,
        NamespaceOptions() if wanted.options is None else wanted.options,
    )


def _check_shards(existing: Namespace, num_shards: int | None) -> None:
    if num_shards not in (None, existing.num_shards):
        problem = f"is {existing.num_shards} since the namespace was created, and stays so"
        raise InvalidInput("num_shards", problem)


def _problem_of(wanted: WantedNamespace) -> str | None:
    try:
        check_namespace(_namespace_of(wanted))
    except InvalidInput as error:
        return _line(wanted, error)
    return None


def _line(wanted: WantedNamespace, error: InvalidInput) -> str:
    return f"namespace {wanted.name!r}: {error.message}"


def _tell_all(problems: Iterable[str | None]) -> None:
    lines = [problem for problem in problems if problem is not None]
    if lines:
        raise SettingsError("\n".join(lines))
