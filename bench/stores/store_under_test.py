"""The store under test, as the measurements see it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bench.harness.progress import Steps


class Lists(Protocol):
    def total(self, status: str) -> int:
        """Timers with the status, as the server counts them."""


class Tally(Protocol):
    """Counts the timers that reached a state since the tally was made."""

    def pending(self) -> int:
        """Timers created since then that are pending."""

    def completed(self) -> int:
        """Completed timers. The number may be too low while timers are executing."""


class StoreUnderTest(Protocol):
    """`directory` is the working directory of the servers; `settings` select the store."""

    directory: Path
    settings: Mapping[str, str]

    def tally(self, lists: Lists) -> Tally: ...

    def fill(self, stored: int, steps: Steps, *, analyze: bool) -> None:
        """Fill the store up to `stored` pending and as many finished timers. No server may run.

        With `analyze`, the statistics of the tables are refreshed at once."""


class ListTally:
    """A tally from the counts of the namespace, for stores whose counts are exact."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._pending_before = lists.total("pending")
        self._completed_before = lists.total("completed")

    def pending(self) -> int:
        return self._lists.total("pending") - self._pending_before

    def completed(self) -> int:
        return self._lists.total("completed") - self._completed_before
