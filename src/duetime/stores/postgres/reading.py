"""Reading single timers."""

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.rows import HAS_KEY, TIMER_COLUMNS, is_storable, timer_of

GET = f"SELECT {TIMER_COLUMNS} FROM timers WHERE {HAS_KEY}"


async def get_timer(connections: Connections, key: TimerKey) -> Timer | None:
    """The timer, wherever it is: one statement sees it in exactly one table."""
    if not is_storable(key):
        return None
    row = await connections.fetch_one(GET, *key)
    return None if row is None else timer_of(row)
