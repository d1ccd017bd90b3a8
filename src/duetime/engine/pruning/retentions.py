"""The retentions of all namespaces, as the store has them now."""

from collections import Counter

from msgspec import Struct

from duetime.domain.namespace import Namespace
from duetime.ports.store import TimerStore


class Retention(Struct, frozen=True):
    """The retention of one namespace, or of all namespaces together (None)."""

    namespace: str | None
    seconds: float


class Retentions:
    """There may be a namespace for each of many tenants. All are read once; later refreshes read
    those that changed, and those that are being deleted.

    Pruning all namespaces together is cheapest. It is done by the longest retention, unless some
    namespace is kept for ever; namespaces with a shorter retention are pruned one by one as well.
    """

    def __init__(self, service_seconds: float | None) -> None:
        """`service_seconds` is for namespaces without a retention of their own. None means for
        ever, here and below."""
        self._service_seconds = service_seconds
        self._mark: str | None = None
        self._seconds: dict[str, float | None] = {}
        self._namespaces_kept_for: Counter[float | None] = Counter()
        self._deleting: set[str] = set()

    async def refresh(self, store: TimerStore) -> None:
        changes = await store.namespaces_changed(self._mark)
        deleting = list(self._deleting)
        found = await store.find_namespaces(deleting) if deleting else []
        gone = set(deleting) - {each.name for each in found}
        if changes.are_all:
            gone = self._seconds.keys() - {each.name for each in changes.namespaces}
        for name in gone:
            self._forget(name)
        for namespace in changes.namespaces:
            self._keep(namespace)
        self._mark = changes.mark

    def of(self, namespace: str | None) -> Retention | None:
        """The pruning of one namespace, or of all together; None if nothing is to be pruned."""
        seconds = self._together_seconds if namespace is None else self._seconds.get(namespace)
        return None if seconds is None else Retention(namespace, seconds)

    def all(self) -> list[Retention]:
        """The prunings that give every namespace its retention."""
        together_seconds = self._together_seconds
        single = [
            Retention(name, seconds)
            for name, seconds in self._seconds.items()
            if seconds is not None and seconds != together_seconds
        ]
        together = self.of(None)
        return single if together is None else [together, *single]

    @property
    def _together_seconds(self) -> float | None:
        kept_for = [seconds for seconds in self._namespaces_kept_for if seconds is not None]
        return max(kept_for, default=None) if None not in self._namespaces_kept_for else None

    def _keep(self, namespace: Namespace) -> None:
        own_seconds = namespace.options.retention_seconds
        seconds = self._service_seconds if own_seconds is None else own_seconds or None
        self._forget(namespace.name)
        self._seconds[namespace.name] = seconds
        self._namespaces_kept_for[seconds] += 1
        if namespace.options.deleting:
            self._deleting.add(namespace.name)

    def _forget(self, name: str) -> None:
        self._deleting.discard(name)
        if name in self._seconds:
            seconds = self._seconds.pop(name)
            self._namespaces_kept_for[seconds] -= 1
            if not self._namespaces_kept_for[seconds]:
                del self._namespaces_kept_for[seconds]
