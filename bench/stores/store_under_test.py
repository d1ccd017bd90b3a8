"""A store that servers under test can be started on, as the harness sees it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bench.harness.progress import Steps


class Lists(Protocol):
    def total(self, status: str) -> int:
        """How many timers have the status, as the list endpoint tells it."""


class Tally(Protocol):
    """Counts what came into a state since the tally was made."""

    def pending(self) -> int:
        """Timers that were created and are pending."""

    def completed(self) -> int:
        """Timers that are completed, once nothing executes any more; less before."""


class StoreUnderTest(Protocol):
    """`directory` is where servers run and log; `settings` tell them which store to use."""

    directory: Path
    settings: Mapping[str, str]

    def tally(self, lists: Lists) -> Tally: ...

    def fill(self, stored: int, steps: Steps, *, analyze: bool) -> None:
        """Bring it to at least `stored` pending and as many finished timers, while no server
        runs. With `analyze`, whatever the store does to know its tables is done right away."""


class ListTally:
    """From the counts of the namespace, where they are exact."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._pending_before = lists.total("pending")
        self._completed_before = lists.total("completed")

    def pending(self) -> int:
        return self._lists.total("pending") - self._pending_before

    def completed(self) -> int:
        return self._lists.total("completed") - self._completed_before
