"""The changes of namespaces in a store that one process has for itself."""

import secrets
from itertools import takewhile

from duetime.ports.store import NamespaceChanges, TimerStore


class ChangeLog:
    """The namespaces that were added or changed since the store was opened, the latest last.

    A change is noted once it is committed. A question in between does not get it, and the next
    one does.
    """

    def __init__(self) -> None:
        self._number_by_name: dict[str, int] = {}
        self._last_number = 0
        self._prefix = f"{secrets.token_hex(8)}:"

    def note(self, name: str) -> None:
        self._number_by_name.pop(name, None)
        self._last_number += 1
        self._number_by_name[name] = self._last_number

    async def answer(self, store: TimerStore, since: str | None) -> NamespaceChanges:
        """All namespaces if the mark is not of this log."""
        mark = f"{self._prefix}{self._last_number}"
        if since is None or not since.startswith(self._prefix):
            return NamespaceChanges(await store.namespaces(), mark, are_all=True)
        number = int(since.removeprefix(self._prefix))
        latest_first = reversed(self._number_by_name.items())
        names = [name for name, _ in takewhile(lambda each: each[1] > number, latest_first)]
        return NamespaceChanges(await store.find_namespaces(names), mark, are_all=False)
