"""The engine's view of namespaces."""

from typing import Protocol

from duetime.domain.namespace import Namespace


class NamespaceView(Protocol):
    """The namespaces as this process last saw them. Pure and quick."""

    def known(self, name: str) -> Namespace | None: ...


class NoNamespaces:
    """A view without namespaces, so that nothing is limited."""

    def known(self, name: str) -> Namespace | None:
        return None
