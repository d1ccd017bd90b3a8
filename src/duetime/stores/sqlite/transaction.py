"""What an operation of the writer works on."""

from collections import defaultdict
from collections.abc import Iterable

import apsw

from duetime.domain.timer import TimerStatus
from duetime.stores.sqlite.blocks import number_of
from duetime.stores.sqlite.statements import Statements
from duetime.stores.sqlite.unfiled import Unfiled

_ADD_TO_COUNT = (
    "INSERT INTO counts (namespace, status, count) VALUES (?1, ?2, ?3)"
    " ON CONFLICT DO UPDATE SET count = count + ?3"
)


class Transaction(Statements):
    """An open write transaction.

    Statements that work on many timers take them as one JSON text and hand back one row, so
    that a batch is a single step of SQLite. A step runs without Python's interpreter lock; one
    step per timer would mean waiting for that lock, in competition with a busy event loop, as
    many times as there are timers.
    """

    def __init__(self, connection: apsw.Connection, unfiled: Unfiled) -> None:
        super().__init__(connection)
        self.unfiled = unfiled
        self.put_away = 0
        self.filed = 0
        self.first_block: int | None = None
        """The oldest that is left, when some were filed in their order."""
        self._first_new_block = unfiled.next_block
        self._count_changes: defaultdict[tuple[str, TimerStatus], int] = defaultdict(int)

    @property
    def total_changes(self) -> int:
        """Rows written on this connection so far, those written by triggers included."""
        return self._connection.total_changes()

    @property
    def unfiled_count(self) -> int:
        return self.unfiled.count + self.put_away - self.filed

    def committed(self) -> None:
        # Not before: until then readers do not find what was filed.
        self.unfiled.committed(self.put_away, self.filed, self.first_block)

    def rolled_back(self) -> None:
        self.unfiled.keys.take_back(number_of(self._first_new_block))

    def find_unfiled(self, timer_uuids: Iterable[bytes]) -> list[int]:
        """The numbers that unfiled timers of these keys may have."""
        return self.unfiled.keys.find(timer_uuids) if self.unfiled_count else []

    def count(self, namespace: str, status: TimerStatus, change: int) -> None:
        """Note that so many timers more (or fewer) have the status."""
        self._count_changes[namespace, status] += change

    def moved(self, namespace: str, before: TimerStatus, after: TimerStatus, timers: int) -> None:
        self.count(namespace, before, -timers)
        self.count(namespace, after, timers)

    def write_counts(self) -> None:
        for (namespace, status), change in self._count_changes.items():
            if change:
                self.execute(_ADD_TO_COUNT, namespace, status, change)
        self._count_changes.clear()
