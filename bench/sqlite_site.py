"""SQLite under test: one new file for each store."""

from collections.abc import Mapping
from pathlib import Path

from bench.preload import Preload, preload_store
from bench.progress import Steps
from bench.site import Lists, ListTally, Tally


class SqliteSite:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = directory / "bench.db"
        self.settings: Mapping[str, str] = {"DATABASE_URL": f"sqlite:///{self._file}"}

    def tally(self, lists: Lists) -> Tally:
        return ListTally(lists)

    def fill(self, stored: int, steps: Steps, *, analyze: bool) -> None:
        with steps.step(f"  {2 * stored:,} timers", total=2 * stored) as advance_to:
            preload_store(
                Preload(path=str(self._file), pending=stored, finished=stored), advance_to
            )
