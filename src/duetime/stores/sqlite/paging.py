"""Reading pages of timers in order."""

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import Page, PageQuery, SortField
from duetime.stores.sqlite.filing import UNFILED_RANGE
from duetime.stores.sqlite.reading import Reader, read_counts
from duetime.stores.sqlite.rows import SELECT_FINISHED, SELECT_LIVE, timer_of

_FETCH_LIVE = f"{SELECT_LIVE} WHERE timers.row_id IN (SELECT value FROM json_each(?))"
_FETCH_FINISHED = f"{SELECT_FINISHED} WHERE timers.row_id IN (SELECT value FROM json_each(?))"


def read_page(reader: Reader, query: PageQuery) -> Page:
    """First the places of the page's timers, from indexes; then those timers only.

    Each status has an index that delivers it in order, so a page costs what it shows and
    skips, not what is stored.
    """
    counts = read_counts(reader, query.namespace)
    statuses = list(TimerStatus) if query.status is None else [query.status]
    total = sum(counts[status] for status in statuses)
    if query.offset >= total:
        return Page([], total)
    direction = "DESC" if query.descending else "ASC"
    branches = [branch for status in statuses for branch in _branches(status, query.sort)]
    statement = (
        " UNION ALL ".join(
            f"SELECT * FROM ({branch} ORDER BY sort {direction}, timer_uuid {direction} LIMIT ?4)"
            for branch in branches
        )
        + f" ORDER BY sort {direction}, timer_uuid {direction} LIMIT ?2 OFFSET ?3"
    )
    values = (query.namespace, query.limit, query.offset, query.limit + query.offset)
    places = [(finished, row_id) for finished, row_id, *_ in reader.execute(statement, *values)]
    return Page(fetch(reader, places), total)


def _branches(status: TimerStatus, sort: SortField) -> list[str]:
    """Statements that read the places of one status's timers in the order of an index.

    Executing timers are few, and so are unfiled ones most of the time: they are sorted on the
    spot.
    """
    column = sort.value
    if status.is_finished:
        by = "created" if sort is SortField.CREATED_AT else "execute"
        source = f"finished_timers INDEXED BY finished_timers_{by}"
        return [_branch(1, source, f"status = {int(status)}", column)]
    if status is TimerStatus.EXECUTING:
        source = "live_timers INDEXED BY live_timers_executing"
        return [_branch(0, source, "status = 1", column)]
    if sort is SortField.CREATED_AT:
        source = "live_timers INDEXED BY live_timers_created"
        return [_branch(0, source, "status = 0", column)]
    source = "live_timers INDEXED BY live_timers_execute"
    return [
        _branch(0, source, "filed = 1 AND status = 0", column),
        _branch(0, "live_timers NOT INDEXED", f"filed = 0 AND {UNFILED_RANGE}", column),
    ]


def _branch(finished: int, source: str, condition: str, sort_column: str) -> str:
    return (
        f"SELECT {finished} AS finished, row_id, {sort_column} AS sort, timer_uuid"
        f" FROM {source} WHERE namespace = ?1 AND {condition}"
    )


def fetch(reader: Reader, places: list[tuple[int, int]]) -> list[Timer]:
    """The timers of these places, in order. A place is whether it is finished, and a row id."""
    timers: dict[int, Timer] = {}
    for wanted, statement in ((0, _FETCH_LIVE), (1, _FETCH_FINISHED)):
        row_ids = [row_id for finished, row_id in places if finished == wanted]
        if row_ids:
            for row in reader.execute(statement, str(row_ids)):
                timers[row[0]] = timer_of(row)
    return [timers[row_id] for _, row_id in places]
