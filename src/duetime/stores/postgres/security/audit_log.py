"""The audit log: entries in order, found by an index for each condition."""

from collections.abc import Sequence
from typing import Any

from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from duetime.stores.postgres.connections import Connections
from duetime.stores.security_rows import (
    AUDIT_COLUMNS,
    AuditSearch,
    entry_of,
    kept_entries,
    search_of,
    values_of,
)

_COLUMNS = ", ".join(AUDIT_COLUMNS)
_ARRAYS = ", ".join(
    f"${number}::{'bigint' if column == 'at' else 'text'}[]"
    for number, column in enumerate(AUDIT_COLUMNS, start=1)
)

# Entries come in the order of their ids, so that nodes that repeat each other do not block.
APPEND = f"""
    INSERT INTO audit_log ({_COLUMNS})
    SELECT * FROM unnest({_ARRAYS})
    ON CONFLICT DO NOTHING
"""

FORGET = """
    WITH forgotten AS (
        DELETE FROM audit_log WHERE id = ANY (ARRAY(
            SELECT id FROM audit_log WHERE at < $1 ORDER BY at, id LIMIT $2
            FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT count(*) FROM forgotten
"""

# The indexes are in another collation. The planner, which does not know the values, might prefer a
# condition that most entries meet.
_NOT_BY_INDEX = ' COLLATE "POSIX"'

_IN_RANGE = "at >= $1 AND (at, id) < ($2, $3)"
_NEWEST_FIRST = "ORDER BY at DESC, id DESC LIMIT $4"


async def append_entries(connections: Connections, entries: Sequence[AuditEntry]) -> None:
    rows = [values_of(entry) for entry in kept_entries(entries)]
    await connections.fetch(APPEND, *map(list, zip(*rows, strict=True)))


async def read_entries(connections: Connections, query: AuditQuery) -> list[AuditEntry]:
    rows = await connections.fetch(*search_statement(search_of(query)))
    return [entry_of(row) for row in rows]


async def forget_entries(connections: Connections, before_exclusive: Instant, limit: int) -> int:
    forgotten: int = await connections.fetch_value(FORGET, before_exclusive, limit)
    return forgotten


def search_statement(search: AuditSearch) -> tuple[Any, ...]:
    """The statement and its values.

    A search reads an index in the order of the answer, from the position on, until the page is
    full. Each of several namespaces has a range of the index: at most a page of each is read, and
    sorted with the others.
    """
    values = [search.from_inclusive, *search.before_exclusive, search.limit]
    conditions = [_IN_RANGE]
    for column, text in search.equal.items():
        values.append(text)
        how = "" if column == search.leading else _NOT_BY_INDEX
        conditions.append(f"{column} = ${len(values)}{how}")
    namespaces = search.namespaces
    if namespaces is not None:
        values.append(namespaces)
    by_namespace = namespaces is not None and search.leading == "namespace"
    if by_namespace:
        conditions.append("audit_log.namespace = wanted.namespace")
    elif namespaces is not None:
        conditions.append(f"namespace = ANY (${len(values)}::text[]{_NOT_BY_INDEX})")
    found = f"SELECT {_COLUMNS} FROM audit_log WHERE {' AND '.join(conditions)} {_NEWEST_FIRST}"
    if by_namespace:
        found = f"""
            SELECT entry.* FROM unnest(${len(values)}::text[]) AS wanted (namespace)
            CROSS JOIN LATERAL ({found}) AS entry
            {_NEWEST_FIRST}
        """
    return found, *values
