"""The namespaces this service accepts timers for, and how a node keeps up with the others'."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from duetime.background import BackgroundLoop
from duetime.domain.errors import (
    Forbidden,
    InvalidInput,
    NamespaceDeleting,
    NamespaceDiffers,
    NamespaceNotFound,
    SettingsError,
    StoreUnavailable,
)
from duetime.domain.namespace import (
    DEFAULT_SHARDS,
    ConfiguredNamespace,
    Namespace,
    NamespaceOptions,
)
from duetime.domain.security.access import EVERYTHING, Access
from duetime.ports.clock import Clock
from duetime.ports.store import Existence, TimerStore
from duetime.service.known_namespaces import KnownNamespaces
from duetime.service.validation import check_namespace, check_typeable

ADDED_AT_ONCE = 32
"""Namespaces added side by side for the tenants of one batch of commands."""

REFRESH_SECONDS = 5.0
"""Time for which a change of options on one node may go unnoticed on the others."""

LONGEST_GAP_SECONDS = 1.5 * REFRESH_SECONDS
"""Time between two looks after which a namespace may be gone that was never seen to be deleted.
Deletions leave twice the usual time between the mark and the first change."""

RestoredNamespace = Existence | InvalidInput | Forbidden | NamespaceDeleting | NamespaceDiffers
"""A namespace of a copy as it is now, or the reason why it was refused."""

_REFUSALS = (InvalidInput, Forbidden, NamespaceDeleting, NamespaceDiffers)


async def _own_nothing() -> None:
    pass


class Namespaces:
    """Every namespace known here exists in the store, with these shards.

    Other nodes may add namespaces and change options. An unknown namespace is looked up in the
    store by its name, and `refresh` reads what has changed. There may be a namespace for each of
    many tenants, so nothing that happens often reads all of them.

    `own_new_shards` is called when the store has a namespace with more shards than any that is
    known here, before the first timer of that namespace is accepted. When it fails the namespace
    stays unknown, and the next look at the store calls it again.
    """

    def __init__(
        self,
        store: TimerStore,
        known: KnownNamespaces | None = None,
        own_new_shards: Callable[[], Awaitable[None]] = _own_nothing,
    ) -> None:
        self._store = store
        self._known = KnownNamespaces() if known is None else known
        self._own_new_shards = own_new_shards
        self._owned_shards = 0
        self._mark: str | None = None
        self._reading = asyncio.Lock()
        self._reads_begun = 0
        self._last_read = 0
        self._failure: tuple[int, StoreUnavailable] | None = None

    def __iter__(self) -> Iterator[Namespace]:
        return iter(self._known)

    def known(self, name: str) -> Namespace | None:
        """The namespace as it was last seen here."""
        return self._known.known(name)

    @property
    def with_objective(self) -> Collection[str]:
        return self._known.with_objective

    @property
    def deleting(self) -> frozenset[str]:
        """Names of the namespaces that were last seen to be deleting."""
        return frozenset(self._known.deleting)

    async def named(self, name: str) -> Namespace:
        """Raises `NamespaceNotFound`."""
        namespace = self.known(name)
        if namespace is None:
            await self.look_up([name])
            namespace = self.known(name)
        if namespace is None:
            raise NamespaceNotFound(name)
        return namespace

    async def current(self, name: str) -> Namespace | None:
        """The namespace as the store has it now."""
        async with self._reading:
            return await self._reread(name)

    async def look_up(self, names: Iterable[str]) -> None:
        """Learn of those of these namespaces that are not known here."""
        unknown = [name for name in names if self.known(name) is None]
        if unknown:
            found = await self._store.find_namespaces(unknown)
            await self._own_shards_of(found)
            for namespace in found:
                # One that became known meanwhile is no older.
                if self.known(namespace.name) is None:
                    self._known.add(namespace)

    async def refresh(self, *, may_have_missed: bool = False) -> None:
        """Learn what other nodes added and changed. A removal shows only if the mark before it was
        seen; with `may_have_missed` all namespaces are read."""
        begun_before = self._reads_begun
        async with self._reading:
            # A read that began after this call, while it waited, has answered it too, or failed
            # for it too: while the store hangs, callers must not fail one after the other.
            if may_have_missed:
                self._mark = None
            elif self._last_read > begun_before:
                return
            elif self._failure is not None and self._failure[0] > begun_before:
                raise self._failure[1]
            await self._read()

    async def put(
        self,
        name: str,
        num_shards: int | None,
        change: Callable[[NamespaceOptions], NamespaceOptions],
        access: Access = EVERYTHING,
    ) -> Namespace:
        """Create the namespace, or change the options of the existing one.

        `change` may be called again with its own answer. When two nodes change options at the
        same time, the last write holds. Raises `Forbidden`, and `InvalidInput`, including when the
        namespace has another number of shards: its timers are spread over that number.
        """
        async with self._reading:
            existing = await self._reread(name)
            if existing is None:
                shards = DEFAULT_SHARDS if num_shards is None else num_shards
                new = Namespace(name, shards, change(NamespaceOptions()))
                access.check_change(None, new)
                check_namespace(new)
                check_typeable(name)
                # Another node may have been faster; then its namespace is the one to change.
                existing = await self._store.add_namespace(new)
                await self._own_shards_of([existing])
                self._known.add(existing)
            if existing.options.deleting:
                raise NamespaceDeleting(name)
            _check_shards(existing, num_shards)
            changed = Namespace(name, existing.num_shards, change(existing.options))
            access.check_change(existing, changed)
            check_namespace(changed)
            if changed != existing:
                await self._store.change_namespace(name, changed.options)
                self._known.add(changed)
            return changed

    async def provide(self, names: Collection[str]) -> None:
        """Create the missing ones of these namespaces, for callers that need not create them
        first. The names have been checked. One that is being deleted stays so: it can be provided
        again afterwards."""
        if all(self.known(name) for name in names):
            return
        async with self._reading:
            await self.look_up(names)
            missing = [name for name in names if not self.known(name)]
            for start in range(0, len(missing), ADDED_AT_ONCE):
                await self._add_missing(missing[start : start + ADDED_AT_ONCE])

    async def _add_missing(self, names: Iterable[str]) -> None:
        """Side by side, because each is a commit of its own."""
        added = await asyncio.gather(
            *(self._store.add_namespace(Namespace(name, DEFAULT_SHARDS)) for name in names),
            return_exceptions=True,
        )
        for each in added:
            if isinstance(each, BaseException):
                raise each
            await self._own_shards_of([each])
            self._known.add(each)

    async def restore(
        self, namespaces: Sequence[Namespace], access: Access = EVERYTHING
    ) -> list[RestoredNamespace]:
        """Create the namespaces of a copy; one outcome for each, in order.

        An existing namespace without options of its own gets those of the copy. Any other stays as
        it is: the outcome is `EXISTING` if it is equal, else `NamespaceDiffers`. Names need not be
        typeable: tenants of the bus have any name.
        """
        async with self._reading:
            found = await self._store.find_namespaces({each.name for each in namespaces})
            await self._own_shards_of(found)
            existing = {each.name: each for each in found}
            for each in found:
                self._known.add(each)
            outcomes: list[RestoredNamespace] = []
            for start in range(0, len(namespaces), ADDED_AT_ONCE):
                # Side by side, because each is a commit of its own.
                some = await asyncio.gather(
                    *(
                        self._restored(each, existing.get(each.name), access)
                        for each in namespaces[start : start + ADDED_AT_ONCE]
                    ),
                    return_exceptions=True,
                )
                for outcome in some:
                    if isinstance(outcome, BaseException) and not isinstance(outcome, _REFUSALS):
                        raise outcome
                    outcomes.append(outcome)
            return outcomes

    async def _restored(
        self, namespace: Namespace, existing: Namespace | None, access: Access
    ) -> Existence:
        check_namespace(namespace)
        existence = Existence.EXISTING
        if existing is None:
            access.check_change(None, namespace)
            existence = Existence.CREATED
            existing = await self._store.add_namespace(namespace)
            await self._own_shards_of([existing])
            self._known.add(existing)
        if existing.options.deleting:
            raise NamespaceDeleting(namespace.name)
        fields = [] if existing.num_shards == namespace.num_shards else ["num_shards"]
        if existing.options == NamespaceOptions() and existing.options != namespace.options:
            access.check_change(existing, namespace)
            existence = Existence.REPLACED
            existing = replace(existing, options=namespace.options)
            await self._store.change_namespace(namespace.name, namespace.options)
            self._known.add(existing)
        fields += [
            field.removesuffix("_seconds")
            for field in namespace.options.__struct_fields__
            if getattr(namespace.options, field) != getattr(existing.options, field)
        ]
        if fields:
            raise NamespaceDiffers(namespace.name, fields)
        return existence

    async def mark_deleting(self, name: str, *, deleting: bool) -> None:
        """Refuse new timers of the namespace, or accept them again. Other nodes follow within
        `REFRESH_SECONDS`."""
        async with self._reading:
            found = await self._reread(name)
            if found is not None and found.options.deleting is not deleting:
                options = replace(found.options, deleting=deleting)
                await self._store.change_namespace(name, options)
                self._known.add(replace(found, options=options))

    async def add_all(self, configured: Iterable[ConfiguredNamespace]) -> None:
        """Create the configured namespaces at start-up, before the engine starts.

        Raises `SettingsError` with one line for each namespace that is refused. When a check
        refuses one, none is created.
        """
        namespaces = list(configured)
        existing = {each.name for each in await self._store.namespaces()}
        _raise_problems(_problem_with(each, existing) for each in namespaces)
        _raise_problems([await self._add(each) for each in namespaces])
        async with self._reading:
            changes = await self._store.namespaces_changed(None)
            self._known.replace_all(changes.namespaces)
            self._mark = changes.mark
            # The engine takes all shards when it starts.
            self._owned_shards = max((each.num_shards for each in self), default=0)

    async def _add(self, configured: ConfiguredNamespace) -> str | None:
        """The problem with the namespace that the store holds, if there is one."""
        # Accepted timers wait for this start, however little room there is.
        stored = await self._store.add_namespace(_namespace_of(configured), in_reserve=True)
        try:
            _check_shards(stored, configured.num_shards)
        except InvalidInput as error:
            return _line(configured, error)
        if configured.options is not None:
            # A deletion goes on after the restart.
            options = replace(configured.options, deleting=stored.options.deleting)
            if options != stored.options:
                await self._store.change_namespace(configured.name, options)
        return None

    async def _read(self) -> None:
        self._reads_begun += 1
        number = self._reads_begun
        try:
            await self._read_changes()
        except StoreUnavailable as error:
            self._failure = (number, error)
            raise
        self._last_read = number
        self._failure = None

    async def _read_changes(self) -> None:
        changes = await self._store.namespaces_changed(self._mark)
        await self._own_shards_of(changes.namespaces)
        if changes.are_all:
            self._known.replace_all(changes.namespaces)
        else:
            for namespace in changes.namespaces:
                self._known.add(namespace)
            for name in list(self._known.deleting):
                await self._reread(name)
        self._mark = changes.mark

    async def _reread(self, name: str) -> Namespace | None:
        """The namespace as the store has it; None if there is none."""
        found = await self._store.find_namespaces([name])
        await self._own_shards_of(found)
        for namespace in found:
            self._known.add(namespace)
            return namespace
        self._known.forget(name)
        return None

    async def _own_shards_of(self, namespaces: Iterable[Namespace]) -> None:
        most = max((each.num_shards for each in namespaces), default=0)
        if most > self._owned_shards:
            await self._own_new_shards()
            self._owned_shards = most


class NamespaceRefresher(BackgroundLoop):
    """Refreshes the namespaces every few seconds where several nodes share a store."""

    name = "namespace-refresher"

    def __init__(self, namespaces: Namespaces, clock: Clock) -> None:
        super().__init__(clock)
        self._namespaces = namespaces
        self._looked_seconds = clock.monotonic()

    async def step(self) -> None:
        await self.wait(REFRESH_SECONDS)
        now_seconds = self._clock.monotonic()
        was_away = now_seconds - self._looked_seconds >= LONGEST_GAP_SECONDS
        await self._namespaces.refresh(may_have_missed=was_away)
        self._looked_seconds = now_seconds


def _namespace_of(configured: ConfiguredNamespace) -> Namespace:
    shards = DEFAULT_SHARDS if configured.num_shards is None else configured.num_shards
    options = NamespaceOptions() if configured.options is None else configured.options
    return Namespace(configured.name, shards, options)


def _check_shards(existing: Namespace, num_shards: int | None) -> None:
    if num_shards not in (None, existing.num_shards):
        raise InvalidInput(
            "num_shards",
            f"was fixed at {existing.num_shards} when the namespace was created and cannot be "
            "changed",
        )


def _problem_with(configured: ConfiguredNamespace, existing: Collection[str]) -> str | None:
    try:
        check_namespace(_namespace_of(configured))
        if configured.name not in existing:
            check_typeable(configured.name)
    except InvalidInput as error:
        return _line(configured, error)
    return None


def _line(configured: ConfiguredNamespace, error: InvalidInput) -> str:
    return f"namespace {configured.name!r}: {error.message}"


def _raise_problems(problems: Iterable[str | None]) -> None:
    lines = [problem for problem in problems if problem is not None]
    if lines:
        raise SettingsError("\n".join(lines))
