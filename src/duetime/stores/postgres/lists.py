"""Lists of timers: pages by offset, scans by position, and counts."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import Page, PageQuery, ScanEntry, ScanQuery, SortField
from duetime.stores.postgres.connections import Connection, Connections
from duetime.stores.postgres.tables import columns_of, condition_of, table_of
from duetime.stores.stored_text import storable
from duetime.stores.timer_rows import position_of, readable_timer, readable_timers

COUNTED_EXACTLY = 10_000
"""Timers of one status up to which a count is exact; the planner estimates larger ones."""

_MAX_OFFSET = 2**62
"""Offset beyond any store's timers; the sum of limit and offset must fit into eight bytes."""

_BEFORE_ALL = (-(2**63), b"")
_AFTER_ALL = (2**63 - 1, b"\xff" * 17)


class Count(NamedTuple):
    timers: int
    is_estimated: bool


async def read_page(connections: Connections, query: PageQuery) -> Page:
    """A page with its total. The two are read one after the other, so they may differ a little."""
    async with connections.borrow() as connection:
        counts = await count(connection, query.namespace, _statuses(query.status))
        total = sum(counted.timers for counted in counts.values())
        is_estimated = any(counted.is_estimated for counted in counts.values())
        if query.offset >= total and not is_estimated:
            return Page([], total)
        statement = page_statement(query.status, query.sort, query.descending)
        offset = min(query.offset, _MAX_OFFSET)
        rows = await connection.fetch(statement, query.namespace, query.limit, offset)
    return Page(list(readable_timers(rows)), total, is_estimated)


@cache
def page_statement(status: TimerStatus | None, sort: SortField, descending: bool) -> str:
    """Reads the positions of the page's timers from indexes first, and then these timers only.

    Each status has an index that delivers it in order, so a page costs its limit and offset,
    however many timers are stored. Executing timers are few, and are sorted on the spot.

    The page's timers of a status lie between its first and last position. A query for this range,
    in order, leaves the planner one index, even where it takes a table for empty: see
    `LISTS_BY_INDEX`.
    """
    order = ordered_by(sort.value, descending)
    statuses = _statuses(status)
    positions = " UNION ALL ".join(
        f"(SELECT {int(each)}::smallint AS status, {sort.value}, timer_uuid"
        f" FROM {table_of(each)} WHERE {condition_of(each)}"
        f" {order} LIMIT $2::bigint + $3::bigint)"
        for each in statuses
    )
    timers = " UNION ALL ".join(
        f"(SELECT {columns_of(each)} FROM {table_of(each)} WHERE {condition_of(each)}"
        f" AND ({sort.value}, timer_uuid) >= ({_outermost_position(each, sort, descending=False)})"
        f" AND ({sort.value}, timer_uuid) <= ({_outermost_position(each, sort, descending=True)})"
        f" {order} LIMIT $2)"
        for each in statuses
    )
    return f"""
        WITH page_position AS MATERIALIZED (
            SELECT * FROM ({positions}) AS positions {order} LIMIT $2 OFFSET $3
        )
        SELECT * FROM ({timers}) AS timers {order}
    """


def _outermost_position(status: TimerStatus, sort: SortField, *, descending: bool) -> str:
    return (
        f"SELECT {sort.value}, timer_uuid FROM page_position"
        f" WHERE page_position.status = {int(status)} {ordered_by(sort.value, descending)} LIMIT 1"
    )


# Values: $1 the namespace, $2 and $3 the position after which the timers are, $4 and $5 the
# position before which they are. Row comparisons are what an index can be searched with.
_BETWEEN = "(execute_at, timer_uuid) > ($2, $3) AND (execute_at, timer_uuid) < ($4, $5)"


async def scan(connections: Connections, query: ScanQuery) -> list[Timer]:
    timers: list[Timer] = []
    while True:
        limit = query.limit - len(timers)
        rows = await _scan_rows(connections, query, limit)
        found = list(readable_timers(rows))
        timers += found
        if len(rows) < limit or len(found) == limit:
            return timers
        query = replace(query, after_exclusive=position_of(rows[-1]))


async def scan_entries(connections: Connections, query: ScanQuery) -> list[ScanEntry]:
    rows = await _scan_rows(connections, query, query.limit)
    return [readable_timer(row) or position_of(row) for row in rows]


async def _scan_rows(connections: Connections, query: ScanQuery, limit: int) -> Sequence[Any]:
    if storable(query.namespace) != query.namespace:
        return []
    statement = scan_statement(query.statuses, query.descending)
    return await connections.fetch(statement, *scan_values(query), limit)


async def count_scan(connections: Connections, query: ScanQuery) -> int:
    if storable(query.namespace) != query.namespace:
        return 0
    after, before = _range(query)
    statement = count_scan_statement(query.statuses)
    counted: int = await connections.fetch_value(statement, query.namespace, *after, *before)
    return counted


@cache
def scan_statement(statuses: tuple[TimerStatus, ...], descending: bool) -> str:
    """Merges the statuses, each of which has an index that delivers it in order, in each partition
    of the history. A scan reads little more than it answers. Executing timers are few, and are
    sorted on the spot. $6 is the limit."""
    order = f"{ordered_by('execute_at', descending)} LIMIT $6"
    branches = " UNION ALL ".join(
        f"(SELECT {columns_of(each)} FROM {table_of(each)}"
        f" WHERE {condition_of(each)} AND {_BETWEEN} {order})"
        for each in statuses
    )
    return f"SELECT * FROM ({branches}) AS branches {order}"


@cache
def count_scan_statement(statuses: tuple[TimerStatus, ...]) -> str:
    counts = " + ".join(
        f"(SELECT count(*) FROM {table_of(each)} WHERE {condition_of(each)} AND {_BETWEEN})"
        for each in statuses
    )
    return f"SELECT {counts}"


def scan_values(query: ScanQuery) -> list[Any]:
    """Values for a scan, but for its limit: the query's range from its position on."""
    after, before = _range(query)
    if query.after_exclusive is not None:
        position = (query.after_exclusive.execute_at, query.after_exclusive.timer_uuid)
        if query.descending:
            before = min(before, position)
        else:
            after = max(after, position)
    return [query.namespace, *after, *before]


def _range(query: ScanQuery) -> tuple[tuple[int, bytes], tuple[int, bytes]]:
    """The positions around the range. No timer is at either: an empty uuid comes before all
    others."""
    since, until = query.execute_from_inclusive, query.execute_until_exclusive
    return (
        _BEFORE_ALL if since is None else (since, b""),
        _AFTER_ALL if until is None else (until, b""),
    )


def _count_up_to(source: str, most: int | str = COUNTED_EXACTLY) -> str:
    return f"(SELECT count(*) FROM (SELECT FROM {source} LIMIT {most} + 1) AS counted)"


def _in_one_namespace(status: TimerStatus) -> str:
    """In order, which leaves the planner one index: see `page_statement`."""
    return f"{table_of(status)} WHERE {condition_of(status)} {ordered_by('execute_at')}"


def _in_all_namespaces(status: TimerStatus) -> str:
    """History by namespace, because every index with the status begins with the namespace."""
    if not status.is_finished:
        return table_of(status)
    each = _in_one_namespace(status).replace("$1", "namespaces.name")
    return f"namespaces CROSS JOIN LATERAL (SELECT FROM {each} OFFSET 0) AS timer"


async def count(
    connection: Connection, namespace: str | None, statuses: Sequence[TimerStatus]
) -> dict[TimerStatus, Count]:
    """The number of timers with each of the statuses, in one namespace or in all."""
    values: Sequence[Any] = () if namespace is None else (namespace,)
    statement = count_statement(statuses, in_all_namespaces=namespace is None)
    row = await connection.fetchrow(statement, *values)
    assert row is not None
    result = {}
    for status, counted in zip(statuses, row, strict=True):
        if counted <= COUNTED_EXACTLY:
            result[status] = Count(counted, is_estimated=False)
        else:
            estimate = await _estimate(connection, namespace, status)
            result[status] = Count(max(estimate, counted), is_estimated=True)
    return result


def count_statement(statuses: Iterable[TimerStatus], *, in_all_namespaces: bool) -> str:
    """A column for each status. $1 is the namespace, unless all are counted."""
    counted = _in_all_namespaces if in_all_namespaces else _in_one_namespace
    return "SELECT " + ", ".join(_count_up_to(counted(status)) for status in statuses)


async def count_unfinished(connections: Connections, namespace: str, exact_up_to: int) -> int:
    async with connections.borrow() as connection:
        row = await connection.fetchrow(count_unfinished_statement(), namespace, exact_up_to)
        assert row is not None
        counted = sum(row)
        if row[0] > exact_up_to:
            counted = max(counted, await _estimate(connection, namespace, TimerStatus.PENDING))
    return counted


@cache
def count_unfinished_statement() -> str:
    """A column for each status. $1 is the namespace, $2 the number up to which each is counted."""
    statuses = (TimerStatus.PENDING, TimerStatus.EXECUTING)
    return "SELECT " + ", ".join(
        _count_up_to(_in_one_namespace(status), "$2::bigint") for status in statuses
    )


class _Plan(msgspec.Struct):
    rows: int = msgspec.field(name="Plan Rows")


class _Explanation(msgspec.Struct):
    plan: _Plan = msgspec.field(name="Plan")


_decode_explanation = msgspec.json.Decoder(list[_Explanation]).decode


async def _estimate(connection: Connection, namespace: str | None, status: TimerStatus) -> int:
    """The planner's estimate, from the table's size and its most common values."""
    table = table_of(status)
    if namespace is not None:
        statement, values = f"SELECT FROM {table} WHERE {condition_of(status)}", [namespace]
    elif status.is_finished:
        statement, values = f"SELECT FROM {table} WHERE status = {int(status)}", []
    else:
        statement, values = f"SELECT FROM {table}", []
    explained = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *values)
    (explanation,) = _decode_explanation(explained)
    return explanation.plan.rows


def ordered_by(column: str, descending: bool = False) -> str:
    direction = "DESC" if descending else "ASC"
    return f"ORDER BY {column} {direction}, timer_uuid {direction}"


def _statuses(status: TimerStatus | None) -> list[TimerStatus]:
    return list(TimerStatus) if status is None else [status]
