"""Lists in several orders and capped counts, each read from an index no further than needed."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from duetime.domain.timer import TimerStatus
from duetime.ports.searching import (
    CappedCount,
    FoundTimer,
    IdPage,
    IdPlace,
    IdQuery,
    OrderedQuery,
)
from duetime.ports.store import SortField
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.lists import ordered_by
from duetime.stores.postgres.tables import TIMER_COLUMNS, columns_of, condition_of, table_of
from duetime.stores.stored_text import storable
from duetime.stores.timer_rows import existing_timer_of, key_of

IDS_LOOKED_AT = 2_000
"""Ids of all namespaces that one scan of ids reads: the index has them side by side."""

# Values: $1 a namespace, $2 ids.
TIMERS_OF_IDS = f"SELECT {TIMER_COLUMNS} FROM timers WHERE namespace = $1 AND id = ANY ($2::text[])"

# Values: $1 a namespace; $2 to $5 two places, both exclusive. Executing timers are few.
_NAMED = "(id, namespace) > ($2, $3) AND (id, namespace) < ($4, $5)"
_TABLES = {
    "pending_timers": _NAMED,
    "executing_timers": f"namespace = $1 AND {_NAMED}",
    "finished_timers": _NAMED,
}


class Pools(Protocol):
    lists: Connections
    reads: Connections


class PostgresSearches:
    """Implements the port of searches on the database of a store."""

    def __init__(self, pools: Callable[[], Pools]) -> None:
        """`pools` raises `StoreUnavailable` while the store is closed."""
        self._pools = pools

    async def scan_in_order(self, query: OrderedQuery) -> Sequence[FoundTimer]:
        if not _is_storable(query.namespace):
            return []
        statement = scan_statement(query.statuses, query.sort, query.descending)
        first, end = query.bounds
        lists = self._pools().lists
        rows = await lists.fetch(statement, query.namespace, *first, *end, query.limit)
        return list(map(_found, rows))

    async def scan_ids(self, query: IdQuery) -> IdPage:
        if not _is_storable(query.namespace, query.prefix):
            return IdPage([], None)
        # Often all ids are of this namespace, and nothing has to be read past.
        ids, looked_until = await self._look(query, query.limit)
        if len(ids) < query.limit and looked_until is not None:
            ids, looked_until = await self._look(query, max(IDS_LOOKED_AT, query.limit))
        # Timers may have moved to another table meanwhile.
        rows = await self._pools().reads.fetch(TIMERS_OF_IDS, query.namespace, ids) if ids else []
        found = sorted(rows, key=_id_of, reverse=query.descending)
        return IdPage(list(map(_found, found)), looked_until)

    async def _look(self, query: IdQuery, most: int) -> tuple[list[str], IdPlace | None]:
        """Look at up to `most` ids of all namespaces. Answers those of the namespace, up to the
        limit, and the place that was reached; None at the end."""
        first, end = query.bounds
        values = (query.namespace, *first, *end, most, query.limit)
        looked = await self._pools().lists.fetch(ids_statement(query.descending), *values)
        ((looked_at, ids, last_id, last_namespace),) = looked
        if len(ids) == query.limit:
            return ids, (ids[-1], query.namespace)
        return ids, None if looked_at < most else (last_id, last_namespace)

    async def count_in_order(self, query: OrderedQuery, *, most: int) -> CappedCount:
        if not _is_storable(query.namespace):
            return CappedCount(0)
        first, end = query.range
        statement = count_statement(query.statuses, query.sort)
        values = (query.namespace, *first, *end, most + 1)
        return _capped(await self._pools().lists.fetch_value(statement, *values), most)

    async def count_ids(self, query: IdQuery, *, most: int) -> CappedCount:
        if not _is_storable(query.namespace, query.prefix):
            return CappedCount(0)
        first, end = query.bounds
        looked = await self._pools().lists.fetch(
            count_ids_statement(), query.namespace, *first, *end, most + 1
        )
        ((looked_at, counted),) = looked
        return CappedCount(min(counted, most), is_minimum=looked_at > most)


# Values: $1 the namespace, $2 to $5 the places between which the timers are, $6 the limit.
def _between(sort: SortField) -> str:
    place = f"({sort.value}, timer_uuid)"
    return f"{place} > ($2, $3) AND {place} < ($4, $5)"


@cache
def scan_statement(statuses: tuple[TimerStatus, ...], sort: SortField, descending: bool) -> str:
    """Merges the statuses, each of which has an index that delivers it in order."""
    order = f"{ordered_by(sort.value, descending)} LIMIT $6"
    branches = " UNION ALL ".join(
        f"(SELECT {columns_of(each)} FROM {table_of(each)}"
        f" WHERE {condition_of(each)} AND {_between(sort)} {order})"
        for each in statuses
    )
    return f"SELECT * FROM ({branches}) AS branches {order}"


@cache
def count_statement(statuses: tuple[TimerStatus, ...], sort: SortField) -> str:
    """Counts no further than $6. In order, which leaves the planner one index."""
    branches = " UNION ALL ".join(
        f"(SELECT 1 FROM {table_of(each)} WHERE {condition_of(each)} AND {_between(sort)}"
        f" {ordered_by(sort.value)} LIMIT $6)"
        for each in statuses
    )
    return f"SELECT count(*) FROM (SELECT 1 FROM ({branches}) AS branches LIMIT $6) AS counted"


@cache
def ids_statement(descending: bool) -> str:
    """Looks at the first $6 ids of all namespaces, and answers up to $7 of the namespace $1, the
    number looked at, and the last place."""
    there, back = ("DESC", "ASC") if descending else ("ASC", "DESC")
    return f"""
        WITH looked AS MATERIALIZED ({_looked(there)})
        SELECT
            (SELECT count(*) FROM looked),
            ARRAY(SELECT id FROM looked WHERE namespace = $1 ORDER BY id {there} LIMIT $7),
            last.id, last.namespace
        FROM (SELECT) AS one LEFT JOIN LATERAL (
            SELECT id, namespace FROM looked ORDER BY id {back}, namespace {back} LIMIT 1
        ) AS last ON true
    """


@cache
def count_ids_statement() -> str:
    """Counts in no order, which saves a merge of thousands of ids."""
    return f"""
        WITH looked AS MATERIALIZED (SELECT * FROM ({_branches("ASC")}) AS branches LIMIT $6)
        SELECT count(*), count(*) FILTER (WHERE namespace = $1) FROM looked
    """


def _looked(direction: str) -> str:
    return f"SELECT * FROM ({_branches(direction)}) AS branches {_id_order(direction)}"


def _branches(direction: str) -> str:
    return " UNION ALL ".join(
        f"(SELECT id, namespace FROM {table} WHERE {condition} {_id_order(direction)})"
        for table, condition in _TABLES.items()
    )


def _id_order(direction: str) -> str:
    return f"ORDER BY id {direction}, namespace {direction} LIMIT $6"


def _capped(counted: int, most: int) -> CappedCount:
    return CappedCount(min(counted, most), is_minimum=counted > most)


def _is_storable(*texts: str) -> bool:
    """Whether PostgreSQL's text can hold these. If not, no timer has them."""
    return all(storable(text) == text for text in texts)


def _id_of(row: Sequence[Any]) -> str:
    return key_of(row).id


def _found(row: Sequence[Any]) -> FoundTimer:
    return FoundTimer(*existing_timer_of(row))
