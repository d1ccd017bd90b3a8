"""Lists in several orders and capped counts, each read from an index no further than needed."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from duetime.domain.timer import TimerStatus
from duetime.ports.searching import CappedCount, FoundTimer, IdPage, IdQuery, OrderedQuery
from duetime.stores.sqlite.connections import Reader, Statements
from duetime.stores.sqlite.lists import read_counts, read_in_order, sources_of
from duetime.stores.sqlite.tables import find_rows_by_id
from duetime.stores.timer_rows import existing_timer_of, key_of

# A namespace that comes after that of a place has the id of the place after it, too.
_NAMED = """
    FROM timers INDEXED BY timers_key WHERE namespace = :namespace
    AND id >= :first AND (id > :first OR namespace > :first_namespace)
    AND id <= :end AND (id < :end OR namespace < :end_namespace)
"""


class OpenedFile(Protocol):
    list_reader: Reader


class SqliteSearches:
    """Implements the port of searches on the file of a store."""

    def __init__(self, opened: Callable[[], OpenedFile]) -> None:
        """`opened` raises `StoreUnavailable` while the store is closed."""
        self._opened = opened

    async def scan_in_order(self, query: OrderedQuery) -> Sequence[FoundTimer]:
        return await self._opened().list_reader.run(partial(scan_in_order, query=query))

    async def scan_ids(self, query: IdQuery) -> IdPage:
        return await self._opened().list_reader.run(partial(scan_ids, query=query))

    async def count_in_order(self, query: OrderedQuery, *, most: int) -> CappedCount:
        count = partial(count_in_order, query=query, most=most)
        return await self._opened().list_reader.run(count)

    async def count_ids(self, query: IdQuery, *, most: int) -> CappedCount:
        return await self._opened().list_reader.run(partial(count_ids, query=query, most=most))


def scan_in_order(statements: Statements, query: OrderedQuery) -> list[FoundTimer]:
    """Each index is read from the place on, so the cost is that of the answer."""
    condition, values = _between(query, *query.bounds)
    values.update(limit=query.limit, offset=0)
    sources = sources_of(query.statuses, query.sort)
    ordered = (query.sort, query.descending)
    rows = read_in_order(statements, sources, condition, ordered, values, _found)
    return [found for _, _, found in rows if found is not None]


def scan_ids(statements: Statements, query: IdQuery) -> IdPage:
    direction = "DESC" if query.descending else "ASC"
    statement = f"SELECT row_id {_NAMED} ORDER BY id {direction} LIMIT :limit"
    numbers = statements.execute_named(statement, {**_names(query), "limit": query.limit})
    rows = find_rows_by_id(statements, [number for (number,) in numbers])
    rows.sort(key=key_of, reverse=query.descending)
    last = key_of(rows[-1]) if len(rows) == query.limit else None
    return IdPage(list(map(_found, rows)), None if last is None else (last.id, last.namespace))


def count_in_order(statements: Statements, query: OrderedQuery, most: int) -> CappedCount:
    """From the table of counts, or from indexes until there are too many."""
    if query.execute_from_inclusive is None and query.execute_until_exclusive is None:
        counts = read_counts(statements, query.namespace)
        return CappedCount(sum(counts[status] for status in query.statuses))
    condition, values = _between(query, *query.range)

    def count(statuses: Sequence[TimerStatus], most: int) -> int:
        selects = " UNION ALL ".join(
            f"SELECT 1 FROM {source.table} WHERE {source.condition} AND {condition}"
            for source in sources_of(statuses, query.sort)
        )
        statement = f"SELECT count(*) FROM ({selects} LIMIT :limit)"
        return int(statements.execute_named(statement, {**values, "limit": most + 1}).get)

    if query.status is TimerStatus.PENDING:
        # The index alone does not tell pending from executing, and executing timers are few.
        executing = count([TimerStatus.EXECUTING], 1_000_000)
        live = count([TimerStatus.PENDING, TimerStatus.EXECUTING], most + executing)
        return _capped(live - executing, most)
    return _capped(count(query.statuses, most), most)


def count_ids(statements: Statements, query: IdQuery, most: int) -> CappedCount:
    statement = f"SELECT count(*) FROM (SELECT 1 {_NAMED} LIMIT :limit)"
    values = {**_names(query), "limit": most + 1}
    return _capped(int(statements.execute_named(statement, values).get), most)


def _capped(counted: int, most: int) -> CappedCount:
    return CappedCount(min(counted, most), is_minimum=counted > most)


def _found(row: Sequence[Any]) -> FoundTimer:
    return FoundTimer(*existing_timer_of(row))


def _between(
    query: OrderedQuery, first: tuple[int, bytes], end: tuple[int, bytes]
) -> tuple[str, dict[str, Any]]:
    """One lower and one upper bound, which is all an index can use."""
    place = f"({query.sort.value}, timer_uuid)"
    after, before = f"{place} > (:first, :first_uuid)", f"{place} < (:end, :end_uuid)"
    values = {
        "namespace": query.namespace,
        "first": first[0],
        "first_uuid": first[1],
        "end": end[0],
        "end_uuid": end[1],
    }
    return f"namespace = :namespace AND {after} AND {before}", values


def _names(query: IdQuery) -> dict[str, Any]:
    (first, first_namespace), (end, end_namespace) = query.bounds
    return {
        "namespace": query.namespace,
        "first": first,
        "first_namespace": first_namespace,
        "end": end,
        "end_namespace": end_namespace,
    }
