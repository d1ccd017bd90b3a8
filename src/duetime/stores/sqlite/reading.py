"""Reading single timers and counts. Works on any connection, reading or writing."""

from typing import Any, Protocol

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.stores.sqlite.rows import SELECT_FINISHED, SELECT_LIVE, Row, timer_of

_GET = f"""
    {SELECT_LIVE} WHERE timers.namespace = ?1 AND timers.id = ?2
    UNION ALL
    {SELECT_FINISHED} WHERE timers.namespace = ?1 AND timers.id = ?2
"""

_COUNTS = """
    SELECT status, sum(count) FROM counts WHERE ?1 IS NULL OR namespace = ?1 GROUP BY status
"""


class Reader(Protocol):
    """A connection that statements can be read from."""

    def execute(self, statement: str, *values: Any) -> Any: ...

    def execute_named(self, statement: str, values: dict[str, Any]) -> Any: ...

    def first(self, statement: str, *values: Any) -> Any: ...


def get_row(reader: Reader, key: TimerKey) -> Row | None:
    """The row of SELECT_LIVE or SELECT_FINISHED that the key has, wherever it is."""
    row: Row | None = reader.first(_GET, key.namespace, key.id)
    return row


def get_timer(reader: Reader, key: TimerKey) -> Timer | None:
    """The timer of the key, if it is filed."""
    row = get_row(reader, key)
    return None if row is None else timer_of(row)


def read_counts(reader: Reader, namespace: str | None) -> dict[TimerStatus, int]:
    counts = dict.fromkeys(TimerStatus, 0)
    for status, count in reader.execute(_COUNTS, namespace):
        counts[TimerStatus(status)] = count
    return counts
