"""SQLite under test: a new file for each store."""

from collections.abc import Mapping
from pathlib import Path

from bench.harness.progress import Steps
from bench.harness.server import Server
from bench.stores.sqlite_bulk import fill_file
from bench.stores.sqlite_preload import Preload, preload_store
from bench.stores.store_under_test import Lists, ListTally, Tally

MOST_THROUGH_THE_STORE = 1_000_000
"""Timers up to which the store's own API is fast enough to fill the file."""


class SqliteFile:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "bench.db"
        self.settings: Mapping[str, str] = {"DATABASE_URL": f"sqlite:///{self.path}"}

    def tally(self, lists: Lists) -> Tally:
        return ListTally(lists)

    def fill(self, stored: int, steps: Steps, *, analyze: bool) -> None:
        preload = Preload(path=str(self.path), pending=stored, finished=stored)
        with steps.step(f"  {2 * stored:,} timers", total=2 * stored) as advance_to:
            if stored <= MOST_THROUGH_THE_STORE:
                preload_store(preload, advance_to)
                return
            # The server creates the tables.
            with Server(self):
                pass
            fill_file(preload, advance_to)
