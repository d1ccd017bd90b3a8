"""The namespaces as this process last saw them."""

from collections.abc import Iterable, Iterator

from duetime.domain.lateness.objective import LatenessObjective
from duetime.domain.namespace import Namespace


class KnownNamespaces:
    """Implements the namespace view port. `Namespaces` fills it."""

    def __init__(self) -> None:
        self._by_name: dict[str, Namespace] = {}
        self.deleting: set[str] = set()
        """Names of those that are being deleted, and may be gone by now."""
        self.objectives: dict[str, LatenessObjective] = {}
        """The lateness objectives of those that have one and are not being deleted."""
        self.with_objective: set[str] = set()

    def __iter__(self) -> Iterator[Namespace]:
        return iter(self._by_name.values())

    def known(self, name: str) -> Namespace | None:
        return self._by_name.get(name)

    def add(self, namespace: Namespace) -> None:
        name, options = namespace.name, namespace.options
        self._by_name[name] = namespace
        if options.deleting:
            self.deleting.add(name)
        else:
            self.deleting.discard(name)
        if options.slo is None:
            self.with_objective.discard(name)
        else:
            self.with_objective.add(name)
        if options.slo is None or options.deleting:
            self.objectives.pop(name, None)
        else:
            self.objectives[name] = options.slo

    def forget(self, name: str) -> None:
        self._by_name.pop(name, None)
        self.deleting.discard(name)
        self.objectives.pop(name, None)
        self.with_objective.discard(name)

    def replace_all(self, namespaces: Iterable[Namespace]) -> None:
        self._by_name = {namespace.name: namespace for namespace in namespaces}
        self.deleting = {each.name for each in self if each.options.deleting}
        self.with_objective = {each.name for each in self if each.options.slo is not None}
        self.objectives = {
            each.name: each.options.slo
            for each in self
            if each.options.slo is not None and not each.options.deleting
        }
