"""Pending timers counted by the span in which they fall due."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise

from duetime.domain.instants import Instant
from duetime.ports.inspection import DueCount
from duetime.stores.sqlite.connections import Reader, Statements

# Values: ?1 and ?2 the span, ?3 the number of timers. The index has all that is asked for.
_DUE = """
    SELECT count(*) FROM (
        SELECT 1 FROM live_timers INDEXED BY live_timers_due
        WHERE status = 0 AND due_at >= ?1 AND due_at < ?2 LIMIT ?3
    )
"""

# Values: ?1 the namespace, ?2 and ?3 the span, ?4 the number of timers. The index has executing
# timers, too.
_TO_EXECUTE = """
    SELECT count(*) FROM (
        SELECT 1 FROM live_timers INDEXED BY live_timers_execute
        WHERE namespace = ?1 AND execute_at >= ?2 AND execute_at < ?3 LIMIT ?4
    )
"""

# Values: ?1 the namespace, ?2 the instant. A node claims timers a moment before their instant.
_CLAIMED_EARLY = """
    SELECT execute_at FROM live_timers INDEXED BY live_timers_executing
    WHERE status = 1 AND namespace = ?1 AND execute_at >= ?2
"""

# Values: ?1 the namespace, ?2 the instant, ?3 the number of timers, from the latest back.
_DUE_AGAIN = """
    SELECT due_at FROM live_timers INDEXED BY live_timers_execute
    WHERE namespace = ?1 AND execute_at < ?2 AND status = 0
    ORDER BY execute_at DESC LIMIT ?3
"""

SPANS_AT_ONCE = 12
"""Spans in one read, so that other lists get their turn."""


async def count_in_parts(
    reader: Reader, bounds: Sequence[Instant], most: int, namespaces: Collection[str] | None
) -> list[DueCount]:
    if namespaces is not None:
        count = partial(count_due_in, bounds=bounds, most=most, namespaces=namespaces)
        return await reader.run(count)
    counts: list[DueCount] = []
    for start in range(0, len(bounds) - 1, SPANS_AT_ONCE):
        part = bounds[start : start + SPANS_AT_ONCE + 1]
        counts += await reader.run(partial(count_due, bounds=part, most=most))
    return counts


def count_due(statements: Statements, bounds: Sequence[Instant], most: int) -> list[DueCount]:
    """In all namespaces, from the index by which timers are claimed."""
    counts = []
    for first, end in pairwise(bounds):
        # One more than asked for tells whether there are more.
        (count,) = statements.first(_DUE, first, end, most + 1)
        counts.append(DueCount(min(count, most), count <= most))
    return counts


def count_due_in(
    statements: Statements, bounds: Sequence[Instant], most: int, namespaces: Collection[str]
) -> list[DueCount]:
    """In some namespaces, from the index of their lists, which has the instants that clients asked
    for. An attempt that was put off has another one, and is looked for apart."""
    put_off: list[Instant] = []
    claimed: Counter[int] = Counter()
    are_all = True
    for name in namespaces:
        limit = most + 1 - len(put_off)
        put_off += (due_at for (due_at,) in statements.execute(_DUE_AGAIN, name, bounds[0], limit))
        if len(put_off) > most:
            are_all = False
            break
    for name in namespaces:
        rows = statements.execute(_CLAIMED_EARLY, name, bounds[0])
        claimed += _by_span((execute_at for (execute_at,) in rows), bounds)
    again = _by_span(put_off, bounds)
    counts = []
    for number, (first, end) in enumerate(pairwise(bounds)):
        count = again[number] - claimed[number]
        for name in namespaces:
            if count > most:
                break
            limit = most + 1 - count
            count += statements.first(_TO_EXECUTE, name, first, end, limit)[0]
        counts.append(DueCount(min(count, most), are_all and count <= most))
    return counts


def _by_span(instants: Iterable[Instant], bounds: Sequence[Instant]) -> Counter[int]:
    return Counter(
        bisect_right(bounds, instant) - 1
        for instant in instants
        if bounds[0] <= instant < bounds[-1]
    )
