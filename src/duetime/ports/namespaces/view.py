"""The engine's view of namespaces."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from duetime.domain.lateness.objective import LatenessObjective
from duetime.domain.namespace import Namespace


class NamespaceView(Protocol):
    """The namespaces as this process last saw them. Pure and quick."""

    @property
    def objectives(self) -> Mapping[str, LatenessObjective]:
        """The lateness objectives of those that have one and are not being deleted."""
        ...

    def known(self, name: str) -> Namespace | None: ...


class NoNamespaces:
    """A view without namespaces, so that nothing is limited."""

    objectives: Mapping[str, LatenessObjective] = MappingProxyType({})

    def known(self, name: str) -> Namespace | None:
        return None
