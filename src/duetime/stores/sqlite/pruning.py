"""Forgetting timers that finished long ago."""

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.stores.sqlite.connections import Transaction

_FIND_OLD = """
    SELECT row_id, namespace, status FROM finished_timers INDEXED BY finished_timers_updated
    WHERE updated_at < ?1 ORDER BY updated_at LIMIT ?2
"""

_FIND_OLD_OF_NAMESPACE = """
    SELECT row_id, namespace, status
    FROM finished_timers INDEXED BY finished_timers_namespace_updated
    WHERE namespace = ?3 AND updated_at < ?1 ORDER BY updated_at LIMIT ?2
"""

_DELETE_FINISHED = "DELETE FROM finished_timers WHERE row_id IN (SELECT value FROM json_each(?1))"
_DELETE_TIMERS = "DELETE FROM timers WHERE row_id IN (SELECT value FROM json_each(?1))"


def prune(
    transaction: Transaction, finished_before: Instant, limit: int, namespace: str | None
) -> int:
    if namespace is None:
        found = transaction.execute(_FIND_OLD, finished_before, limit)
    else:
        found = transaction.execute(_FIND_OLD_OF_NAMESPACE, finished_before, limit, namespace)
    old = list(found)
    if old:
        row_ids = str([row_id for row_id, _, _ in old])
        transaction.execute(_DELETE_FINISHED, row_ids)
        transaction.execute(_DELETE_TIMERS, row_ids)
        for _, namespace, status in old:
            transaction.count(namespace, TimerStatus(status), -1)
    return len(old)
