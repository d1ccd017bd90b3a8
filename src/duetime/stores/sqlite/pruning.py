"""Forgetting timers that finished long ago, by a clock that may be believed."""

from collections import Counter
from heapq import merge
from itertools import islice
from typing import Any

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.stores.sqlite.connections import Statements, Transaction

_OLD = """
    SELECT updated_at, finish_number, row_id, namespace, status
    FROM finished_timers INDEXED BY finished_timers_updated
    WHERE namespace = ?1 AND updated_at < ?2 ORDER BY updated_at LIMIT ?3
"""

# Namespaces with old timers, in the order in which their first timers finished. They are found by
# skipping from name to name in the index, so no namespace is missed because of a wrong count.
_NAMESPACES = """
    WITH RECURSIVE named (namespace) AS (
        SELECT min(namespace) FROM finished_timers INDEXED BY finished_timers_updated
        UNION ALL
        SELECT (SELECT min(later.namespace)
                FROM finished_timers AS later INDEXED BY finished_timers_updated
                WHERE later.namespace > named.namespace)
        FROM named WHERE named.namespace IS NOT NULL
    )
    SELECT namespace, (
        SELECT min(updated_at) FROM finished_timers AS timer INDEXED BY finished_timers_updated
        WHERE timer.namespace = named.namespace) AS first
    FROM named WHERE first < ?1 ORDER BY first LIMIT ?2
"""

_DELETE_FINISHED = """
    DELETE FROM finished_timers WHERE finish_number IN (SELECT value FROM json_each(?1))
"""
DELETE_TIMERS = "DELETE FROM timers WHERE row_id IN (SELECT value FROM json_each(?1))"

_BELIEVED_AT = "SELECT believed_at FROM clock"
_MARK_BELIEVED = """
    INSERT INTO clock (number, believed_at) VALUES (1, ?1)
    ON CONFLICT DO UPDATE SET believed_at = excluded.believed_at
"""


def prune(
    transaction: Transaction, finished_before: Instant, limit: int, namespace: str | None
) -> int:
    if namespace is None:
        old = _oldest(transaction, finished_before, limit)
    else:
        old = list(transaction.execute(_OLD, namespace, finished_before, limit))
    if old:
        transaction.execute(_DELETE_FINISHED, str([finish_number for _, finish_number, *_ in old]))
        transaction.execute(DELETE_TIMERS, str([row_id for _, _, row_id, *_ in old]))
        forgotten = Counter((name, status) for *_, name, status in old)
        for (name, status), timers in forgotten.items():
            transaction.count(name, TimerStatus(status), -timers)
    return len(old)


def _oldest(transaction: Transaction, finished_before: Instant, limit: int) -> list[Any]:
    """The timers of all namespaces that finished first.

    Each namespace has one of them at least, so no more namespaces than timers matter.
    """
    namespaces = list(transaction.execute(_NAMESPACES, finished_before, limit))
    streams = [transaction.execute(_OLD, name, finished_before, limit) for name, _ in namespaces]
    return list(islice(merge(*streams), limit))


def clock_believed_at(statements: Statements) -> Instant | None:
    row = statements.first(_BELIEVED_AT)
    return None if row is None else Instant(row[0])


def mark_clock_believed(transaction: Transaction, now: Instant) -> None:
    transaction.execute(_MARK_BELIEVED, now)
