"""Getting timers wherever they are, filed or not: only the writer can tell."""

from collections.abc import Sequence

from duetime.domain.keys import TimerKey, timer_uuid_of
from duetime.domain.timer import Timer
from duetime.stores.sqlite.filing import find_unfiled
from duetime.stores.sqlite.reading import get_timer
from duetime.stores.sqlite.rows import SELECT_LIVE, timer_of
from duetime.stores.sqlite.transaction import Transaction

_FETCH = f"{SELECT_LIVE} WHERE timers.row_id IN (SELECT value FROM json_each(?1))"


def find_timers(transaction: Transaction, keys: Sequence[TimerKey]) -> list[Timer | None]:
    rows = find_unfiled(transaction, [timer_uuid_of(key) for key in keys])
    unfiled = {timer.key: timer for timer in map(timer_of, transaction.execute(_FETCH, rows))}
    return [unfiled.get(key) or get_timer(transaction, key) for key in keys]
