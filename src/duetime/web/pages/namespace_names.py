"""The namespaces that a form offers."""

from bisect import insort
from itertools import islice

from duetime.domain.security.access import Access
from duetime.service.namespaces import Namespaces

LISTED_NAMESPACES = 300
"""Namespaces that are offered as a list; with more, a name has to be typed."""


def names_to_choose(namespaces: Namespaces, access: Access) -> list[str] | None:
    """The namespaces that the caller sees, in order; None if they are too many for a list. Never
    looks at all of very many."""
    if access.namespaces is None:
        found = [each.name for each in islice(namespaces, LISTED_NAMESPACES + 1)]
    else:
        found = [name for name in access.namespaces if namespaces.known(name) is not None]
    return None if len(found) > LISTED_NAMESPACES else sorted(found)


class FirstNames:
    """The first of very many names, which come one by one in any order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.names: list[str] = []
        self.found = 0

    def add(self, name: str) -> None:
        self.found += 1
        if len(self.names) < self._most or name < self.names[-1]:
            insort(self.names, name)
            del self.names[self._most :]
