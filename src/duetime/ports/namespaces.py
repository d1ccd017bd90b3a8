"""What the engine needs to know of namespaces."""

from collections.abc import Iterator
from typing import Protocol

from duetime.domain.namespace import Namespace


class NamespaceView(Protocol):
    """The namespaces as they were last seen by this process. Pure and quick."""

    def known(self, name: str) -> Namespace | None: ...

    def __iter__(self) -> Iterator[Namespace]: ...


class NoNamespaces:
    """A view that knows none, so that nothing is limited."""

    def known(self, name: str) -> Namespace | None:
        return None

    def __iter__(self) -> Iterator[Namespace]:
        return iter(())
