"""The audit log: entries in order, found by an index for each condition."""

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from duetime.stores.security_rows import (
    AUDIT_COLUMNS,
    AuditSearch,
    entry_of,
    kept_entries,
    search_of,
    values_of,
)
from duetime.stores.sqlite.connections import Statements, Transaction

_encode = msgspec.json.Encoder().encode

_COLUMNS = ", ".join(AUDIT_COLUMNS)
_AT, _ID = AUDIT_COLUMNS.index("at"), AUDIT_COLUMNS.index("id")

# The entries are a JSON array of arrays in the order of the columns.
_APPEND = f"""
    INSERT INTO audit_log ({_COLUMNS})
    SELECT {", ".join(f"value ->> {n}" for n in range(len(AUDIT_COLUMNS)))} FROM json_each(?1)
    WHERE true ON CONFLICT DO NOTHING
"""

_FORGET = """
    DELETE FROM audit_log WHERE id IN (
        SELECT id FROM audit_log INDEXED BY audit_log_at
        WHERE at < ?1 ORDER BY at, id LIMIT ?2)
"""


def append_entries(transaction: Transaction, entries: Sequence[AuditEntry]) -> Sequence[None]:
    rows = [values_of(entry) for entry in kept_entries(entries)]
    transaction.execute(_APPEND, _encode(rows).decode())
    return [None] * len(entries)


def read_entries(statements: Statements, query: AuditQuery) -> list[AuditEntry]:
    """The index of the leading condition is read from the position on, until the page is full.

    Each of several namespaces has a range of the index. The ranges are merged, so that of each no
    more is read than the answer has of it, and one entry.
    """
    search = search_of(query)
    if search.leading == "namespace":
        streams = [_read(statements, search, namespace) for namespace in search.namespaces or ()]
    else:
        streams = [_read(statements, search, None)]
    newest_first = merge(*streams, key=lambda row: (row[_AT], row[_ID]), reverse=True)
    return [entry_of(row) for row in islice(newest_first, search.limit)]


def forget_entries(transaction: Transaction, before_exclusive: Instant, limit: int) -> int:
    before = transaction.total_changes
    transaction.execute(_FORGET, before_exclusive, limit)
    return transaction.total_changes - before


def _read(statements: Statements, search: AuditSearch, namespace: str | None) -> Any:
    """The rows in the order of the answer, of one namespace if it is given."""
    conditions = [f"{column} = :{column}" for column in search.equal]
    values: dict[str, Any] = {**search.equal, "limit": search.limit}
    if namespace is not None:
        conditions.append("namespace = :namespace")
        values["namespace"] = namespace
    elif search.namespaces is not None:
        conditions.append("namespace IN (SELECT value FROM json_each(:namespaces))")
        values["namespaces"] = _encode(search.namespaces).decode()
    conditions += ["at >= :from_at", "(at, id) < (:before_at, :before_id)"]
    values["from_at"] = search.from_inclusive
    values["before_at"], values["before_id"] = search.before_exclusive
    return statements.execute_named(
        f"SELECT {_COLUMNS} FROM audit_log INDEXED BY audit_log_{search.leading or 'at'}"
        f" WHERE {' AND '.join(conditions)} ORDER BY at DESC, id DESC LIMIT :limit",
        values,
    )
