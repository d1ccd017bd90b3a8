"""Reading on from a place in the order of the instants that were asked for."""

from typing import Any

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import ScanQuery
from duetime.stores.sqlite.filing import UNFILED_RANGE
from duetime.stores.sqlite.paging import fetch
from duetime.stores.sqlite.reading import Reader, read_counts

_LIVE = (0, "live_timers INDEXED BY live_timers_execute", "filed = 1")
_PENDING = (0, "live_timers INDEXED BY live_timers_execute", "filed = 1 AND status = 0")
_UNFILED = (0, "live_timers NOT INDEXED", f"filed = 0 AND {UNFILED_RANGE}")
_EXECUTING = (0, "live_timers INDEXED BY live_timers_executing", "status = 1")
_FINISHED = [
    (1, "finished_timers INDEXED BY finished_timers_execute", f"status = {int(status)}")
    for status in TimerStatus
    if status.is_finished
]


def scan(reader: Reader, query: ScanQuery) -> list[Timer]:
    """First the places of the timers, from indexes; then those timers only.

    Each branch is an index read from its place on, so the cost is that of the answer. Executing
    timers alone are few: they are sorted on the spot.
    """
    condition, values = _conditions(query, goes_on=True)
    direction = "DESC" if query.descending else "ASC"
    order = f"ORDER BY execute_at {direction}, timer_uuid {direction} LIMIT :limit"
    branches = [
        f"SELECT * FROM (SELECT {finished} AS finished, row_id, execute_at, timer_uuid"
        f" FROM {source} WHERE {only} AND {condition} {order})"
        for finished, source, only in _branches(query.status)
    ]
    statement = f"{' UNION ALL '.join(branches)} {order}"
    values["limit"] = query.limit
    found = reader.execute_named(statement, values)
    return fetch(reader, [(finished, row_id) for finished, row_id, *_ in found])


def count_scan(reader: Reader, query: ScanQuery) -> int:
    if query.execute_from_inclusive is None and query.execute_until_exclusive is None:
        counts = read_counts(reader, query.namespace)
        return sum(counts.values()) if query.status is None else counts[query.status]
    condition, values = _conditions(query, goes_on=False)

    def count(source: str, only: str) -> int:
        statement = f"SELECT count(*) FROM {source} WHERE {only} AND {condition}"
        (number,) = reader.execute_named(statement, values).fetchone()
        return int(number)

    if query.status is TimerStatus.PENDING:
        # The index alone does not tell pending from executing; these are few.
        return count(*_LIVE[1:]) + count(*_UNFILED[1:]) - count(*_EXECUTING[1:])
    return sum(count(source, only) for _, source, only in _branches(query.status))


def _branches(status: TimerStatus | None) -> list[tuple[int, str, str]]:
    if status is None:
        return [_LIVE, _UNFILED, *_FINISHED]
    if status is TimerStatus.PENDING:
        return [_PENDING, _UNFILED]
    if status is TimerStatus.EXECUTING:
        return [_EXECUTING]
    return [_FINISHED[status - TimerStatus.COMPLETED]]


def _conditions(query: ScanQuery, *, goes_on: bool) -> tuple[str, dict[str, Any]]:
    """The range as at most one lower and one upper bound, which is all an index can use."""
    conditions = ["namespace = :namespace"]
    values: dict[str, Any] = {"namespace": query.namespace}
    first, end = query.execute_from_inclusive, query.execute_until_exclusive
    after = query.after_exclusive if goes_on else None
    if after is not None:
        place = "(execute_at, timer_uuid) {} (:place_execute_at, :place_timer_uuid)"
        if query.descending and (end is None or after.execute_at < end):
            conditions.append(place.format("<"))
            end = None
        elif not query.descending and (first is None or after.execute_at >= first):
            conditions.append(place.format(">"))
            first = None
        values["place_execute_at"] = after.execute_at
        values["place_timer_uuid"] = after.timer_uuid
    if first is not None:
        conditions.append("execute_at >= :first")
        values["first"] = first
    if end is not None:
        conditions.append("execute_at < :end")
        values["end"] = end
    return " AND ".join(conditions), values
