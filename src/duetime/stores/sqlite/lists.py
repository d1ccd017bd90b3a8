"""Lists of timers in order: pages by number, scans from a position on, and counts."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.inspection import LiveCounts, NamespaceCounts
from duetime.ports.store import Page, PageQuery, Position, ScanEntry, ScanQuery, SortField
from duetime.stores.sqlite.connections import Statements
from duetime.stores.sqlite.tables import FETCH_FINISHED, FETCH_LIVE
from duetime.stores.timer_rows import readable_timer

Result = TypeVar("Result")

# The name that comes after the first ?1 namespaces, if there are more.
_FIRST_UNNAMED = "SELECT DISTINCT namespace FROM counts ORDER BY namespace LIMIT 1 OFFSET ?1"

_COUNTS_BY_NAMESPACE = """
    SELECT CASE WHEN ?1 IS NULL OR namespace < ?1 THEN namespace END AS name, status, sum(count)
    FROM counts WHERE status IN (0, 3) GROUP BY name, status
"""

_EXECUTING_BY_NAMESPACE = "SELECT namespace, count FROM counts WHERE status = 1 AND count > 0"

_OVERDUE_BY_NAMESPACE = """
    SELECT namespace, count(*) FROM (
        SELECT namespace FROM live_timers INDEXED BY live_timers_due
        WHERE status = 0 AND due_at < ?1 ORDER BY due_at, timer_uuid LIMIT ?2
    ) GROUP BY namespace
"""

_COUNTS = "SELECT status, count FROM counts WHERE namespace = ?1"
_ALL_COUNTS = "SELECT status, sum(count) FROM counts GROUP BY status"


class Source(Struct, frozen=True):
    """An index to select from, and the condition on its rows."""

    table: str
    condition: str
    is_finished: bool = False


_LIVE = Source("live_timers INDEXED BY live_timers_execute", "true")
_LIVE_BY_CREATION = Source("live_timers INDEXED BY live_timers_created", "true")
_EXECUTING = Source("live_timers INDEXED BY live_timers_executing", "status = 1")


def read_counts(statements: Statements, namespace: str | None) -> dict[TimerStatus, int]:
    counts = dict.fromkeys(TimerStatus, 0)
    asked = (_ALL_COUNTS,) if namespace is None else (_COUNTS, namespace)
    for status, count in statements.execute(*asked):
        counts[TimerStatus(status)] = count
    return counts


def count_by_namespace(statements: Statements, most_names: int) -> NamespaceCounts:
    """From the table of counts, which every write keeps up to date."""
    first_unnamed = statements.first(_FIRST_UNNAMED, most_names) or (None,)
    pending: dict[str | None, int] = {}
    failed: dict[str | None, int] = {}
    for name, status, count in statements.execute(_COUNTS_BY_NAMESPACE, *first_unnamed):
        (pending if status == TimerStatus.PENDING else failed)[name] = count
    return NamespaceCounts(pending, failed)


def count_live(statements: Statements, now: Instant, most: int) -> LiveCounts:
    executing = dict(statements.execute(_EXECUTING_BY_NAMESPACE))
    # One more than asked for tells whether there are more.
    overdue = dict(statements.execute(_OVERDUE_BY_NAMESPACE, now, most + 1))
    return LiveCounts(executing, overdue, are_all=sum(overdue.values()) <= most)


def read_page(statements: Statements, query: PageQuery) -> Page:
    """Each status has an index that delivers it in order, so a page costs what it shows and
    skips, not what is stored."""
    counts = read_counts(statements, query.namespace)
    statuses = list(TimerStatus) if query.status is None else [query.status]
    total = sum(counts[status] for status in statuses)
    if query.offset >= total:
        return Page([], total)
    sources = [_source(status, query.sort) for status in statuses]
    values = {"namespace": query.namespace, "limit": query.limit, "offset": query.offset}
    condition = "namespace = :namespace"
    ordered = (query.sort, query.descending)
    found = read_in_order(statements, sources, condition, ordered, values, readable_timer)
    return Page([timer for _, _, timer in found if timer is not None], total)


def scan(statements: Statements, query: ScanQuery) -> list[Timer]:
    timers: list[Timer] = []
    while True:
        limit = query.limit - len(timers)
        entries = scan_entries(statements, replace(query, limit=limit))
        found = [entry for entry in entries if isinstance(entry, Timer)]
        timers += found
        if len(entries) < limit or len(found) == limit:
            return timers
        last = entries[-1]
        query = replace(query, after_exclusive=Position(last.execute_at, last.timer_uuid))


def scan_entries(statements: Statements, query: ScanQuery) -> list[ScanEntry]:
    """Each index is read from the position on, so the cost is that of the answer."""
    ordered = (SortField.EXECUTE_AT, query.descending)
    condition, values = _conditions(query, goes_on=True)
    values.update(limit=query.limit, offset=0)
    sources = sources_of(query.statuses, SortField.EXECUTE_AT)
    found = read_in_order(statements, sources, condition, ordered, values, readable_timer)
    return [timer or Position(execute_at, timer_uuid) for execute_at, timer_uuid, timer in found]


def count_scan(statements: Statements, query: ScanQuery) -> int:
    if query.execute_from_inclusive is None and query.execute_until_exclusive is None:
        counts = read_counts(statements, query.namespace)
        return sum(counts[status] for status in query.statuses)
    condition, values = _conditions(query, goes_on=False)

    def count(source: Source) -> int:
        statement = f"SELECT count(*) FROM {source.table} WHERE {source.condition} AND {condition}"
        return int(statements.execute_named(statement, values).get)

    if query.status is TimerStatus.PENDING:
        # The index alone does not tell pending from executing, and executing timers are few.
        return count(_LIVE) - count(_EXECUTING)
    return sum(map(count, sources_of(query.statuses, SortField.EXECUTE_AT)))


def _source(status: TimerStatus, sort: SortField) -> Source:
    """The index that has the timers of one status in order.

    Executing timers are few: they are sorted on the spot.
    """
    if status is TimerStatus.EXECUTING:
        return _EXECUTING
    by = "created" if sort is SortField.CREATED_AT else "execute"
    table = "finished_timers" if status.is_finished else "live_timers"
    return Source(f"{table} INDEXED BY {table}_{by}", f"status = {status:d}", status.is_finished)


def sources_of(statuses: Sequence[TimerStatus], sort: SortField) -> list[Source]:
    """One index has all live timers in order."""
    if len(statuses) == 1:
        return [_source(statuses[0], sort)]
    live = _LIVE_BY_CREATION if sort is SortField.CREATED_AT else _LIVE
    finished = [each for each in statuses if each.is_finished]
    return [live, *(_source(each, sort) for each in finished)]


def read_in_order(
    statements: Statements,
    sources: Sequence[Source],
    condition: str,
    ordered: tuple[SortField, bool],
    values: dict[str, Any],
    of_row: Callable[[Sequence[Any]], Result],
) -> list[tuple[Instant, bytes, Result | None]]:
    """Find the keys of the states in indexes first, then read those timers only.

    Answers the instant to sort by and the uuid of each timer, and what `of_row` makes of its row.
    """
    sort, descending = ordered[0].value, "DESC" if ordered[1] else "ASC"
    selects = [
        f"SELECT {source.is_finished:d}, {'finish_number' if source.is_finished else 'row_id'},"
        f" {sort} AS sort, timer_uuid"
        f" FROM {source.table} WHERE {source.condition} AND {condition}"
        for source in sources
    ]
    order = f"ORDER BY sort {descending}, timer_uuid {descending} LIMIT :limit OFFSET :offset"
    found = list(statements.execute_named(f"{' UNION ALL '.join(selects)} {order}", values))
    timers: dict[tuple[int, int], Result] = {}
    for is_finished, fetch in enumerate((FETCH_LIVE, FETCH_FINISHED)):
        numbers = [number for kind, number, *_ in found if kind == is_finished]
        if numbers:
            for number, *row in statements.execute(fetch, str(numbers)):
                timers[is_finished, number] = of_row(row)
    return [
        (instant, timer_uuid, timers.get((is_finished, number)))
        for is_finished, number, instant, timer_uuid in found
    ]


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
