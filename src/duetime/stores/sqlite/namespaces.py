"""Namespaces, the shards that come with them, and bulk operations on their timers."""

from collections.abc import Collection
from heapq import merge
from itertools import islice

from duetime.domain.bulk import BulkOperation
from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import TimerStatus
from duetime.stores.namespace_rows import namespace_of, options_text
from duetime.stores.operation_rows import operation_of, operation_text
from duetime.stores.sqlite.connections import Statements, Transaction
from duetime.stores.sqlite.pruning import DELETE_TIMERS

_ADD_NAMESPACE = """
    INSERT INTO namespaces (name, num_shards, options) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
"""

_GET_NAMESPACE = "SELECT name, num_shards, options FROM namespaces WHERE name = ?"

_CHANGE_NAMESPACE = """
    UPDATE namespaces SET options = ?2 WHERE name = ?1 RETURNING name, num_shards, options
"""

_IS_DELETING = "SELECT 1 FROM namespaces WHERE name = ?1 AND options ->> 'deleting'"

_REMOVE_NAMESPACE = f"""
    DELETE FROM namespaces
    WHERE name = ?1 AND EXISTS ({_IS_DELETING})
      AND NOT EXISTS (SELECT 1 FROM timers WHERE namespace = ?1)
"""

_SOME_PENDING = f"""
    SELECT row_id FROM live_timers INDEXED BY live_timers_execute
    WHERE namespace = ?1 AND status = 0 AND EXISTS ({_IS_DELETING})
    ORDER BY execute_at, timer_uuid LIMIT ?2
"""

_DELETE_LIVE = "DELETE FROM live_timers WHERE row_id IN (SELECT value FROM json_each(?1))"

_REMOVE_COUNTS = """
    DELETE FROM counts WHERE namespace = ?1 AND NOT EXISTS (
        SELECT 1 FROM timers WHERE namespace = ?1)
"""

_REMOVE_LATENESS = """
    DELETE FROM lateness_counts WHERE namespace = ?1 AND NOT EXISTS (
        SELECT 1 FROM namespaces WHERE name = ?1)
"""

# SQLite compares UTF-8 bytes, which gives the order of code points.
_NAMESPACES = "SELECT name, num_shards, options FROM namespaces ORDER BY name"

_ADD_SHARDS = """
    WITH RECURSIVE numbers (shard) AS (
        SELECT 0 UNION ALL SELECT shard + 1 FROM numbers WHERE shard + 1 < ?1)
    INSERT INTO shards (shard, epoch) SELECT shard, 0 FROM numbers WHERE true
    ON CONFLICT DO NOTHING
"""

_ADD_OPERATION = """
    INSERT INTO operations (id, created_at, updated_at, version, is_running, document)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (id) DO NOTHING
"""

_GET_OPERATION = "SELECT document FROM operations WHERE id = ?1"

_NEWEST_OPERATIONS = "SELECT document FROM operations ORDER BY created_at DESC, id DESC LIMIT ?1"

_RUNNING_OPERATIONS = """
    SELECT document FROM operations WHERE is_running ORDER BY created_at DESC, id DESC LIMIT ?1
"""

_OPERATIONS_OF = """
    SELECT created_at, id, document FROM operations INDEXED BY operations_namespace
    WHERE namespace = ?2 AND (is_running OR NOT ?3)
    ORDER BY created_at DESC, id DESC LIMIT ?1
"""

_REPLACE_OPERATION = """
    UPDATE operations SET updated_at = ?2, version = ?3, is_running = ?4, document = ?5
    WHERE id = ?1 AND version = ?3 - 1 RETURNING version
"""

_FORGET_OPERATIONS = """
    DELETE FROM operations WHERE id IN (
        SELECT id FROM operations WHERE NOT is_running AND updated_at < ?1 LIMIT ?2)
    RETURNING id
"""


def add_namespace(
    transaction: Transaction, namespace: Namespace, refusal: Exception | None
) -> Namespace:
    """Raises the refusal if the namespace does not exist."""
    if refusal is not None and transaction.first(_GET_NAMESPACE, namespace.name) is None:
        raise refusal
    options = options_text(namespace.options)
    transaction.execute(_ADD_NAMESPACE, namespace.name, namespace.num_shards, options)
    kept = namespace_of(*transaction.first(_GET_NAMESPACE, namespace.name))
    transaction.execute(_ADD_SHARDS, kept.num_shards)
    return kept


def change_namespace(
    transaction: Transaction, name: str, options: NamespaceOptions
) -> Namespace | None:
    row = transaction.first(_CHANGE_NAMESPACE, name, options_text(options))
    return None if row is None else namespace_of(*row)


def remove_namespace(transaction: Transaction, name: str) -> bool:
    transaction.execute(_REMOVE_NAMESPACE, name)
    transaction.write_counts()
    transaction.execute(_REMOVE_COUNTS, name)
    transaction.execute(_REMOVE_LATENESS, name)
    return transaction.first(_GET_NAMESPACE, name) is None


def remove_pending(transaction: Transaction, namespace: str, limit: int) -> int:
    row_ids = [row_id for (row_id,) in transaction.execute(_SOME_PENDING, namespace, limit)]
    if row_ids:
        transaction.execute(_DELETE_LIVE, str(row_ids))
        transaction.execute(DELETE_TIMERS, str(row_ids))
        transaction.count(namespace, TimerStatus.PENDING, -len(row_ids))
    return len(row_ids)


def read_namespaces(statements: Statements) -> list[Namespace]:
    return [namespace_of(*row) for row in statements.execute(_NAMESPACES)]


def find_namespaces(statements: Statements, names: Collection[str]) -> list[Namespace]:
    found = [statements.first(_GET_NAMESPACE, name) for name in names]
    return [namespace_of(*row) for row in found if row is not None]


def add_operation(transaction: Transaction, operation: BulkOperation) -> None:
    transaction.execute(
        _ADD_OPERATION,
        operation.id,
        operation.created_at,
        operation.updated_at,
        operation.version,
        operation.is_running,
        operation_text(operation),
    )


def get_operation(statements: Statements, operation_id: str) -> BulkOperation | None:
    row = statements.first(_GET_OPERATION, operation_id)
    return None if row is None else operation_of(row[0])


def read_operations(
    statements: Statements, running: bool, limit: int, namespaces: Collection[str] | None
) -> list[BulkOperation]:
    if namespaces is None:
        rows = statements.execute(_RUNNING_OPERATIONS if running else _NEWEST_OPERATIONS, limit)
        return [operation_of(text) for (text,) in rows]
    # Each namespace has a range of the index, and the ranges are merged: nothing is read of others.
    ranges = [statements.execute(_OPERATIONS_OF, limit, each, running) for each in set(namespaces)]
    newest_first = merge(*ranges, key=lambda row: row[:2], reverse=True)
    return [operation_of(text) for *_, text in islice(newest_first, limit)]


def replace_operation(transaction: Transaction, operation: BulkOperation) -> bool:
    replaced = transaction.first(
        _REPLACE_OPERATION,
        operation.id,
        operation.updated_at,
        operation.version,
        operation.is_running,
        operation_text(operation),
    )
    return replaced is not None


def forget_operations(transaction: Transaction, ended_before: Instant, limit: int) -> int:
    return len(list(transaction.execute(_FORGET_OPERATIONS, ended_before, limit)))
