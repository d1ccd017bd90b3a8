"""Reading pages of timers in order."""

from collections.abc import Sequence

from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import Page, PageQuery, SortField
from duetime.stores.sqlite.finding import fetch_unfiled
from duetime.stores.sqlite.reading import Reader, read_counts
from duetime.stores.sqlite.rows import SELECT_FINISHED, SELECT_LIVE, timer_of
from duetime.stores.sqlite.unfiled_order import Kind, ListStatements, Source

_FETCH_LIVE = f"{SELECT_LIVE} WHERE timers.row_id IN (SELECT value FROM json_each(?))"
_FETCH_FINISHED = f"{SELECT_FINISHED} WHERE timers.row_id IN (SELECT value FROM json_each(?))"


def read_page(reader: ListStatements, query: PageQuery) -> Page:
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
    order = f"ORDER BY sort {direction}, timer_uuid {direction}"
    sources = [source for status in statuses for source in _sources(reader, status, query.sort)]
    selects = [_select(source, query.sort.value) for source in sources]
    values = {
        "namespace": query.namespace,
        "limit": query.limit,
        "offset": query.offset,
        "until": query.limit + query.offset,
    }
    found = reader.execute_named(merged(selects, sources, order), values)
    places = [(kind, place) for kind, place, *_ in found]
    return Page(fetch(reader, places), total)


def merged(selects: Sequence[str], sources: Sequence[Source], order: str) -> str:
    """One statement for what all of them select, in order: `limit` of it from `offset` on.

    What is ordered already is merged as it is read. The rest is sorted first, no more of each
    than can be wanted.
    """
    branches = [
        select if source.is_ordered else f"SELECT * FROM ({select} {order} LIMIT :until)"
        for select, source in zip(selects, sources, strict=True)
    ]
    return f"{' UNION ALL '.join(branches)} {order} LIMIT :limit OFFSET :offset"


def _sources(reader: ListStatements, status: TimerStatus, sort: SortField) -> list[Source]:
    """Where the timers of one status are, in the order of an index.

    Executing timers are few: they are sorted on the spot.
    """
    by = "created" if sort is SortField.CREATED_AT else "execute"
    if status.is_finished:
        table = f"finished_timers INDEXED BY finished_timers_{by}"
        return [Source(table, f"status = {int(status)}", kind=Kind.FINISHED)]
    if status is TimerStatus.EXECUTING:
        return [Source("live_timers INDEXED BY live_timers_executing", "status = 1")]
    live = Source(f"live_timers INDEXED BY live_timers_{by}", "status = 0")
    return [live, *reader.unfiled_sources(sort)]


def _select(source: Source, sort_column: str) -> str:
    return (
        f"SELECT {source.kind:d} AS kind, {source.column} AS place, {sort_column} AS sort,"
        f" timer_uuid"
        f" FROM {source.table} WHERE namespace = :namespace AND {source.condition}"
    )


def fetch(reader: Reader, places: Sequence[tuple[Kind, int]]) -> list[Timer]:
    """The timers of these places, in order. A place is a kind, and a row id or number of it."""
    timers: dict[tuple[Kind, int], Timer] = {}
    for kind, statement in ((Kind.LIVE, _FETCH_LIVE), (Kind.FINISHED, _FETCH_FINISHED)):
        row_ids = [place for of_kind, place in places if of_kind == kind]
        if row_ids:
            for row in reader.execute(statement, str(row_ids)):
                timers[kind, row[0]] = timer_of(row)
    numbers = [place for of_kind, place in places if of_kind == Kind.UNFILED]
    for number, timer in fetch_unfiled(reader, numbers).items():
        timers[Kind.UNFILED, number] = timer
    return [timers[place] for place in places]
