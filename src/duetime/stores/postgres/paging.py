"""Reading pages of timers in order."""

from functools import cache

from duetime.domain.timer import TimerStatus
from duetime.ports.store import Page, PageQuery, SortField
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.counting import count
from duetime.stores.postgres.rows import columns_of, condition_of, table_of, timer_of


async def read_page(connections: Connections, query: PageQuery) -> Page:
    """The total and the page are read one after the other: they may be a moment apart."""
    statuses = list(TimerStatus) if query.status is None else [query.status]
    async with connections.borrow() as connection:
        counts = await count(connection, query.namespace, statuses)
        total = sum(counted.timers for counted in counts.values())
        is_estimated = any(counted.is_estimated for counted in counts.values())
        if query.offset >= total and not is_estimated:
            return Page([], total)
        statement = page_statement(query.status, query.sort, query.descending)
        # Their sum has to fit into eight bytes, and no store holds as many timers.
        offset = min(query.offset, _MORE_THAN_ANY_STORE_HOLDS)
        rows = await connection.fetch(statement, query.namespace, query.limit, offset)
    return Page([timer_of(row) for row in rows], total, is_estimated)


_MORE_THAN_ANY_STORE_HOLDS = 2**62


@cache
def page_statement(status: TimerStatus | None, sort: SortField, descending: bool) -> str:
    """First the places of the page's timers, from indexes; then those timers only.

    Each status has an index that delivers it in order, so a page costs what it shows and skips,
    not what is stored. Executing timers are few: they are sorted on the spot.

    The timers of a status are all those between its first and its last place. Asking for them so,
    and in order, leaves the planner one index, even where it takes a table for empty: see
    `LISTS_BY_INDEX`.
    """
    statuses = list(TimerStatus) if status is None else [status]
    direction = "DESC" if descending else "ASC"
    order = f"{sort.value} {direction}, timer_uuid {direction}"
    places = " UNION ALL ".join(
        f"(SELECT {int(each)}::smallint AS status, {sort.value}, timer_uuid"
        f" FROM {table_of(each)} WHERE {condition_of(each)}"
        f" ORDER BY {order} LIMIT $2::bigint + $3::bigint)"
        for each in statuses
    )
    timers = " UNION ALL ".join(
        f"(SELECT {columns_of(each)} FROM {table_of(each)} WHERE {condition_of(each)}"
        f" AND ({sort.value}, timer_uuid) >= ({_outermost_place(each, sort, 'ASC')})"
        f" AND ({sort.value}, timer_uuid) <= ({_outermost_place(each, sort, 'DESC')})"
        f" ORDER BY {order} LIMIT $2)"
        for each in statuses
    )
    return f"""
        WITH place AS MATERIALIZED (
            SELECT * FROM ({places}) AS places ORDER BY {order} LIMIT $2 OFFSET $3
        )
        SELECT * FROM ({timers}) AS timers ORDER BY {order}
    """


def _outermost_place(status: TimerStatus, sort: SortField, direction: str) -> str:
    return (
        f"SELECT {sort.value}, timer_uuid FROM place WHERE place.status = {int(status)}"
        f" ORDER BY {sort.value} {direction}, timer_uuid {direction} LIMIT 1"
    )
