"""The engine's view of namespaces."""

from collections.abc import Collection
from typing import Protocol

from duetime.domain.namespace import Namespace


class NamespaceView(Protocol):
    """The namespaces as this process last saw them. Pure and quick."""

    @property
    def with_objective(self) -> Collection[str]:
        """The names of those with a lateness objective, even if they are being deleted."""
        ...

    def known(self, name: str) -> Namespace | None: ...


class NoNamespaces:
    """A view without namespaces, so that nothing is limited."""

    with_objective: Collection[str] = ()

    def known(self, name: str) -> Namespace | None:
        return None
