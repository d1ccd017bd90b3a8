"""The three tables of timers: their columns, and the text that PostgreSQL can hold."""

from collections.abc import Sequence

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.stores.stored_text import storable
from duetime.stores.timer_rows import COLUMNS

SHARED_COLUMNS = ", ".join(COLUMNS[:-3])
"""Columns of all three tables, in their order: all but status, claimed_at and executed_at."""

TIMER_COLUMNS = ", ".join(COLUMNS)
"""Columns of the view `timers`, in the order that `timer_of` reads them."""

PENDING_AS_TIMER = f"{SHARED_COLUMNS}, 0::smallint, NULL::bigint, NULL::bigint"
EXECUTING_AS_TIMER = f"{SHARED_COLUMNS}, 1::smallint, claimed_at, NULL::bigint"
FINISHED_AS_TIMER = f"{SHARED_COLUMNS}, status, NULL::bigint, executed_at"

HAS_KEY = "namespace = $1 AND id = $2"

LISTS_COLLATION = 'COLLATE "POSIX"'
"""Collation of the namespace in the indexes of lists. Comparisons in another collation cannot use
these indexes; the first migration says why."""


def qualified(table: str, columns: str = SHARED_COLUMNS) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def table_of(status: TimerStatus) -> str:
    if status is TimerStatus.PENDING:
        return "pending_timers"
    return "executing_timers" if status is TimerStatus.EXECUTING else "finished_timers"


def columns_of(status: TimerStatus) -> str:
    """TIMER_COLUMNS, as the table for the status has them."""
    if status is TimerStatus.PENDING:
        return PENDING_AS_TIMER
    return EXECUTING_AS_TIMER if status is TimerStatus.EXECUTING else FINISHED_AS_TIMER


def condition_of(status: TimerStatus) -> str:
    """The condition for the rows of that table with the status, in the namespace $1."""
    if status is TimerStatus.EXECUTING:
        # Executing timers are few, and have no index for lists.
        return "namespace = $1"
    listed = f"namespace = $1 {LISTS_COLLATION}"
    return f"{listed} AND status = {int(status)}" if status.is_finished else listed


def command_orders_of(timers: Sequence[Timer]) -> list[int]:
    """The timers' command orders; empty if all are 0, which costs nothing to send."""
    orders = [timer.command_order for timer in timers]
    return orders if any(orders) else []


def is_storable(key: TimerKey) -> bool:
    """Whether PostgreSQL's text can hold the key. If not, no timer has that key."""
    return storable(key.namespace) == key.namespace and storable(key.id) == key.id


def storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)
