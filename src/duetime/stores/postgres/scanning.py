"""Reading timers in the order of their instants, from any place on."""

from functools import cache
from typing import Any

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import ScanQuery
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.rows import columns_of, condition_of, storable, table_of, timer_of

_BEFORE_ALL = (-(2**63), b"")
_AFTER_ALL = (2**63 - 1, b"\xff" * 17)

# Values: $1 the namespace, $2 and $3 the place after which the timers are, $4 and $5 the place
# before which they are. Both are compared as rows, which is what an index is searched for with.
_BETWEEN = "(execute_at, timer_uuid) > ($2, $3) AND (execute_at, timer_uuid) < ($4, $5)"


async def scan(connections: Connections, query: ScanQuery) -> list[Timer]:
    if storable(query.namespace) != query.namespace:
        return []
    statement = scan_statement(query.status, query.descending)
    rows = await connections.fetch(statement, *scan_values(query), query.limit)
    return [timer_of(row) for row in rows]


async def count_scan(connections: Connections, query: ScanQuery) -> int:
    if storable(query.namespace) != query.namespace:
        return 0
    after, before = _range(query)
    statement = count_scan_statement(query.status)
    counted: int = await connections.fetch_value(statement, query.namespace, *after, *before)
    return counted


@cache
def scan_statement(status: TimerStatus | None, descending: bool) -> str:
    """Each status has an index that delivers it in order, in each partition of the history; they
    are merged, so a scan reads little more than it answers. Executing timers are few: they are
    sorted on the spot. $6 is the limit."""
    direction = "DESC" if descending else "ASC"
    order = f"ORDER BY execute_at {direction}, timer_uuid {direction} LIMIT $6"
    branches = " UNION ALL ".join(
        f"(SELECT {columns_of(each)} FROM {table_of(each)}"
        f" WHERE {condition_of(each)} AND {_BETWEEN} {order})"
        for each in _statuses(status)
    )
    return f"SELECT * FROM ({branches}) AS branches {order}"


@cache
def count_scan_statement(status: TimerStatus | None) -> str:
    counts = " + ".join(
        f"(SELECT count(*) FROM {table_of(each)} WHERE {condition_of(each)} AND {_BETWEEN})"
        for each in _statuses(status)
    )
    return f"SELECT {counts}"


def scan_values(query: ScanQuery) -> list[Any]:
    """From the place on, within the range of instants."""
    after, before = _range(query)
    if query.after_exclusive is not None:
        place = (query.after_exclusive.execute_at, query.after_exclusive.timer_uuid)
        if query.descending:
            before = min(before, place)
        else:
            after = max(after, place)
    return [query.namespace, *after, *before]


def _range(query: ScanQuery) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    """The places between which the range is. No timer is at either of them: an empty uuid comes
    before every other."""
    since, until = query.execute_from_inclusive, query.execute_until_exclusive
    return (
        _BEFORE_ALL if since is None else (since, b""),
        _AFTER_ALL if until is None else (until, b""),
    )


def _statuses(status: TimerStatus | None) -> list[TimerStatus]:
    return list(TimerStatus) if status is None else [status]
