"""Reading on from a place in the order of the instants that were asked for."""

from typing import Any

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import ScanQuery
from duetime.stores.sqlite.paging import fetch, merged
from duetime.stores.sqlite.reading import read_counts
from duetime.stores.sqlite.unfiled_order import ListStatements, Source

_EXECUTE_INDEX = "live_timers INDEXED BY live_timers_execute"
_LIVE = Source(_EXECUTE_INDEX, "filed = 1")
_PENDING = Source(_EXECUTE_INDEX, "filed = 1 AND status = 0")
_EXECUTING = Source("live_timers INDEXED BY live_timers_executing", "status = 1")
_FINISHED = [
    Source(
        "finished_timers INDEXED BY finished_timers_execute", f"status = {int(status)}", finished=1
    )
    for status in TimerStatus
    if status.is_finished
]

MAX_LOOKED_UP = 10_000
"""Unfiled timers that are looked up to count them; many times as many rows are read as fast."""


def scan(reader: ListStatements, query: ScanQuery) -> list[Timer]:
    """First the places of the timers, from indexes; then those timers only.

    Each source is an index read from its place on, so the cost is that of the answer. Executing
    timers alone are few, and so are unfiled ones that are not noted yet: they are sorted on the
    spot.
    """
    condition, values = _conditions(query, goes_on=True)
    direction = "DESC" if query.descending else "ASC"
    order = f"ORDER BY execute_at {direction}, timer_uuid {direction}"
    sources = _sources(query.status)
    if query.status in (None, TimerStatus.PENDING):
        sources += [*reader.noted_sources(), reader.unnoted_source()]
    statement = merged([_select(source, condition) for source in sources], sources, order)
    values.update(limit=query.limit, offset=0, until=query.limit)
    found = reader.execute_named(statement, values)
    return fetch(reader, [(finished, row_id) for finished, row_id, *_ in found])


def _select(source: Source, condition: str) -> str:
    return (
        f"SELECT {source.finished} AS finished, row_id, execute_at, timer_uuid"
        f" FROM {source.table} WHERE {source.condition} AND {condition}"
    )


def count_scan(reader: ListStatements, query: ScanQuery) -> int:
    if query.execute_from_inclusive is None and query.execute_until_exclusive is None:
        counts = read_counts(reader, query.namespace)
        return sum(counts.values()) if query.status is None else counts[query.status]
    condition, values = _conditions(query, goes_on=False)

    def count(source: Source, limit: int = -1) -> int:
        selected = f"SELECT 1 FROM {source.table} WHERE {source.condition} AND {condition}"
        statement = f"SELECT count(*) FROM ({selected} LIMIT {limit})"
        return int(reader.execute_named(statement, values).get)

    def count_unfiled() -> int:
        """Each one that is noted is looked up. If they are many, reading all rows is faster."""
        number = 0
        for source in reader.noted_sources():
            number += count(source, MAX_LOOKED_UP - number)
            if number == MAX_LOOKED_UP:
                return count(reader.all_unfiled_source())
        return number + count(reader.unnoted_source())

    if query.status is TimerStatus.PENDING:
        # The index alone does not tell pending from executing; these are few.
        return count(_LIVE) + count_unfiled() - count(_EXECUTING)
    unfiled = count_unfiled() if query.status is None else 0
    return unfiled + sum(map(count, _sources(query.status)))


def _sources(status: TimerStatus | None) -> list[Source]:
    """Where timers of the status are that are filed."""
    if status is None:
        return [_LIVE, *_FINISHED]
    if status is TimerStatus.PENDING:
        return [_PENDING]
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
