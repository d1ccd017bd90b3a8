"""Reading pages of timers in order."""

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import Page, PageQuery, SortField
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
    return Page(_fetch(reader, places), total)


def _branches(status: TimerStatus, sort: SortField) -> list[str]:
    """Statements that read the places of one status's timers in the order of an index.

    Executing timers are few: they are sorted on the spot.
    """
    if status.is_finished:
        by = "created" if sort is SortField.CREATED_AT else "execute"
        index = f"finished_timers_{by}"
        return [_branch("finished_timers", index, f"status = {int(status)}", sort.value)]
    if status is TimerStatus.EXECUTING:
        return [_branch("live_timers", "live_timers_executing", "status = 1", sort.value)]
    if sort is SortField.CREATED_AT:
        return [_branch("live_timers", "live_timers_created", "status = 0", sort.value)]
    return [
        _branch("live_timers", "live_timers_due", "status = 0 AND due_at = execute_at", "due_at"),
        _branch(
            "live_timers",
            "live_timers_deferred",
            "status = 0 AND due_at <> execute_at",
            "execute_at",
        ),
    ]


def _branch(table: str, index: str, condition: str, sort_column: str) -> str:
    finished = int(table == "finished_timers")
    return (
        f"SELECT {finished} AS finished, row_id, {sort_column} AS sort, timer_uuid"
        f" FROM {table} INDEXED BY {index} WHERE namespace = ?1 AND {condition}"
    )


def _fetch(reader: Reader, places: list[tuple[int, int]]) -> list[Timer]:
    timers: dict[int, Timer] = {}
    for wanted, statement in ((0, _FETCH_LIVE), (1, _FETCH_FINISHED)):
        row_ids = [row_id for finished, row_id in places if finished == wanted]
        if row_ids:
            for row in reader.execute(statement, str(row_ids)):
                timers[row[0]] = timer_of(row)
    return [timers[row_id] for _, row_id in places]
