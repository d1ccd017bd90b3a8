"""Reading on from a place in the order of the instants that were asked for."""

from typing import Any

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import ScanQuery, SortField
from duetime.stores.sqlite.paging import fetch, merged
from duetime.stores.sqlite.reading import read_counts
from duetime.stores.sqlite.unfiled_order import Kind, ListStatements, Source

_EXECUTE_INDEX = "live_timers INDEXED BY live_timers_execute"
_LIVE = Source(_EXECUTE_INDEX, "true")
_PENDING = Source(_EXECUTE_INDEX, "status = 0")
_EXECUTING = Source("live_timers INDEXED BY live_timers_executing", "status = 1")
_FINISHED = [
    Source(
        "finished_timers INDEXED BY finished_timers_execute",
        f"status = {int(status)}",
        kind=Kind.FINISHED,
    )
    for status in TimerStatus
    if status.is_finished
]


def scan(reader: ListStatements, query: ScanQuery) -> list[Timer]:
    """First the places of the timers, from indexes; then those timers only.

    Each source is an index read from its place on, so the cost is that of the answer. Executing
    timers alone are few: they are sorted on the spot.
    """
    condition, values = _conditions(query, goes_on=True)
    direction = "DESC" if query.descending else "ASC"
    order = f"ORDER BY execute_at {direction}, timer_uuid {direction}"
    sources = _sources(query.status)
    if query.status in (None, TimerStatus.PENDING):
        sources += reader.unfiled_sources(SortField.EXECUTE_AT)
    statement = merged([_select(source, condition) for source in sources], sources, order)
    values.update(limit=query.limit, offset=0, until=query.limit)
    found = reader.execute_named(statement, values)
    return fetch(reader, [(kind, place) for kind, place, *_ in found])


def _select(source: Source, condition: str) -> str:
    return (
        f"SELECT {source.kind:d} AS kind, {source.column} AS place, execute_at, timer_uuid"
        f" FROM {source.table} WHERE {source.condition} AND {condition}"
    )


def count_scan(reader: ListStatements, query: ScanQuery) -> int:
    if query.execute_from_inclusive is None and query.execute_until_exclusive is None:
        counts = read_counts(reader, query.namespace)
        return sum(counts.values()) if query.status is None else counts[query.status]
    condition, values = _conditions(query, goes_on=False)

    def count(source: Source) -> int:
        statement = f"SELECT count(*) FROM {source.table} WHERE {source.condition} AND {condition}"
        return int(reader.execute_named(statement, values).get)

    sources = _sources(query.status)
    if query.status is TimerStatus.PENDING:
        # The index alone does not tell pending from executing; these are few.
        sources = [_LIVE]
    if query.status in (None, TimerStatus.PENDING):
        sources += reader.counted_sources()
    executing = count(_EXECUTING) if query.status is TimerStatus.PENDING else 0
    return sum(map(count, sources)) - executing


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
