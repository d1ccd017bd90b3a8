"""Every store there is, for the suites that run on all of them. A new store is one line here."""

from collections.abc import Callable
from pathlib import Path

from duetime.stores.memory import MemoryStore
from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract import Store

MakeStore = Callable[[Path], Store]

STORES: dict[str, MakeStore] = {
    "memory": lambda directory: MemoryStore(),
    "sqlite": lambda directory: SqliteStore(directory / "timers.db"),
}


class Storage:
    """One storage and the store that has it open."""

    def __init__(self, make_store: MakeStore, directory: Path) -> None:
        self._make_store = make_store
        self._directory = directory
        self.store = make_store(directory)

    async def reopen(self) -> Store:
        await self.store.close()
        if self.store.capabilities.durable:
            self.store = self._make_store(self._directory)
        await self.store.open()
        return self.store
