"""Namespaces and their options, and bulk operations on their timers."""

from collections.abc import Collection, Sequence

from duetime.domain.bulk import BulkOperation
from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.ports.store import NamespaceChanges
from duetime.stores.namespace_rows import namespace_of, options_text
from duetime.stores.operation_rows import operation_of, operation_text
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.tables import LISTS_COLLATION
from duetime.stores.stored_text import storable

_ADD = """
    INSERT INTO namespaces (name, num_shards, options) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""

_GET = "SELECT name, num_shards, options FROM namespaces WHERE name = $1"

_CHANGE = "UPDATE namespaces SET options = $2 WHERE name = $1 RETURNING name, num_shards, options"

_IS_DELETING = "options::json ->> 'deleting' = 'true'"

# A search of the history reads the index of each partition.
_REMOVE = f"""
    WITH removed AS (
        DELETE FROM namespaces
        WHERE name = $1 AND {_IS_DELETING}
          AND NOT EXISTS (SELECT 1 FROM pending_timers WHERE namespace = $1 COLLATE "POSIX")
          AND NOT EXISTS (SELECT 1 FROM executing_timers WHERE namespace = $1)
          AND NOT EXISTS (
              SELECT 1 FROM finished_timers
              WHERE namespace = $1 COLLATE "POSIX" AND status IN (2, 3, 4))
        RETURNING name
    )
    DELETE FROM lateness_counts WHERE namespace = $1 AND EXISTS (SELECT FROM removed)
"""

# The lock makes a change of the options wait, and the condition is checked again once the lock is
# there. Timers that others have locked are about to be claimed or changed, and are left out.
REMOVE_PENDING = f"""
    WITH doomed_namespace AS MATERIALIZED (
        SELECT name FROM namespaces WHERE name = $1 AND {_IS_DELETING} FOR SHARE
    ), gone AS (
        DELETE FROM pending_timers
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM pending_timers
            WHERE namespace = $1 {LISTS_COLLATION} AND EXISTS (SELECT FROM doomed_namespace)
            ORDER BY execute_at, timer_uuid LIMIT $2 FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), booked AS (
        UPDATE ledger SET removed = removed + (SELECT count(*) FROM gone)
        WHERE slot = (SELECT ledger_slot()) AND EXISTS (SELECT FROM gone)
    )
    SELECT count(*) FROM gone
"""

_ALL = 'SELECT name, num_shards, options FROM namespaces ORDER BY name COLLATE "C"'

FIND = "SELECT name, num_shards, options FROM namespaces WHERE name = ANY ($1::text[])"

# A transaction that was under way at the time of an answer may commit afterwards. The mark is the
# oldest of these, so that the next answer has what it wrote.
CHANGED = """
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text, name, num_shards, options
    FROM (VALUES (1)) AS one LEFT JOIN namespaces ON changed_in >= $1::text::xid8
"""

_BEFORE_EVERYTHING = "0"

# A trigger sets the number of the current transaction.
_RENUMBER_CHANGES = """
    UPDATE namespaces SET changed_in = changed_in
    WHERE changed_in >= pg_snapshot_xmax(pg_current_snapshot())
"""

_ADD_SHARDS = """
    WITH fences AS (
        INSERT INTO shard_fences (role, shard, epoch)
        SELECT role, shard, 0
        FROM generate_series(0, 1) AS role, generate_series(0, $1 - 1) AS shard
        ORDER BY role, shard ON CONFLICT DO NOTHING
    )
    INSERT INTO shards (shard, epoch) SELECT shard, 0 FROM generate_series(0, $1 - 1) AS shard
    ORDER BY shard ON CONFLICT DO NOTHING
"""

_ADD_OPERATION = """
    INSERT INTO operations (id, created_at, updated_at, version, is_running, document)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (id) DO NOTHING
"""

_GET_OPERATION = "SELECT document FROM operations WHERE id = $1"

_NEWEST_OPERATIONS = "SELECT document FROM operations ORDER BY created_at DESC, id DESC LIMIT $1"

_RUNNING_OPERATIONS = """
    SELECT document FROM operations WHERE is_running ORDER BY created_at DESC, id DESC LIMIT $1
"""

# Each namespace has a range of the index: at most a page of each is read, whatever others do.
OPERATIONS_OF = """
    SELECT found.document FROM unnest($2::text[]) AS wanted (namespace)
    CROSS JOIN LATERAL (
        SELECT created_at, id, document FROM operations
        WHERE operations.namespace = wanted.namespace AND (is_running OR NOT $3)
        ORDER BY created_at DESC, id DESC LIMIT $1
    ) AS found
    ORDER BY found.created_at DESC, found.id DESC LIMIT $1
"""

_REPLACE_OPERATION = """
    UPDATE operations SET updated_at = $2, version = $3, is_running = $4, document = $5
    WHERE id = $1 AND version = $3 - 1 RETURNING true
"""

_FORGET_OPERATIONS = """
    WITH forgotten AS (
        DELETE FROM operations WHERE id IN (
            SELECT id FROM operations WHERE NOT is_running AND updated_at < $1 LIMIT $2)
        RETURNING id)
    SELECT count(*) FROM forgotten
"""


async def add_namespace(connections: Connections, namespace: Namespace) -> Namespace:
    options = options_text(namespace.options)
    async with connections.borrow() as connection, connection.transaction():
        await connection.execute(_ADD, namespace.name, namespace.num_shards, options)
        row = await connection.fetchrow(_GET, namespace.name)
        assert row is not None
        held = namespace_of(*row)
        await connection.execute(_ADD_SHARDS, held.num_shards)
    return held


async def change_namespace(
    connections: Connections, name: str, options: NamespaceOptions
) -> Namespace | None:
    if storable(name) != name:
        return None
    row = await connections.fetch_one(_CHANGE, name, options_text(options))
    return None if row is None else namespace_of(*row)


async def remove_namespace(connections: Connections, name: str) -> bool:
    if storable(name) != name:
        return True
    async with connections.borrow() as connection:
        await connection.execute(_REMOVE, name)
        return await connection.fetchrow(_GET, name) is None


async def remove_pending(connections: Connections, namespace: str, limit: int) -> int:
    if storable(namespace) != namespace:
        return 0
    removed: int = await connections.fetch_value(REMOVE_PENDING, namespace, limit)
    return removed


async def read_namespaces(connections: Connections) -> Sequence[Namespace]:
    return [namespace_of(*row) for row in await connections.fetch(_ALL)]


async def find_namespaces(connections: Connections, names: Collection[str]) -> list[Namespace]:
    storable_names = [name for name in names if storable(name) == name]
    return [namespace_of(*row) for row in await connections.fetch(FIND, storable_names)]


async def read_changes(connections: Connections, since: str | None) -> NamespaceChanges:
    rows = await connections.fetch(CHANGED, since or _BEFORE_EVERYTHING)
    changed = [namespace_of(*row) for _, *row in rows if row[0] is not None]
    return NamespaceChanges(changed, rows[0][0], are_all=since is None)


async def renumber_changes(connections: Connections) -> None:
    """Replace transaction numbers that this server has yet to reach: those of another server, whose
    dump was restored here. The changes would count as new until then."""
    await connections.fetch(_RENUMBER_CHANGES)


async def add_operation(connections: Connections, operation: BulkOperation) -> None:
    await connections.fetch(
        _ADD_OPERATION,
        operation.id,
        operation.created_at,
        operation.updated_at,
        operation.version,
        operation.is_running,
        operation_text(operation),
    )


async def get_operation(connections: Connections, operation_id: str) -> BulkOperation | None:
    text = await connections.fetch_value(_GET_OPERATION, operation_id)
    return None if text is None else operation_of(text)


async def read_operations(
    connections: Connections, running: bool, limit: int, namespaces: Collection[str] | None
) -> Sequence[BulkOperation]:
    if namespaces is not None:
        rows = await connections.fetch(OPERATIONS_OF, limit, list(set(namespaces)), running)
    else:
        statement = _RUNNING_OPERATIONS if running else _NEWEST_OPERATIONS
        rows = await connections.fetch(statement, limit)
    return [operation_of(text) for (text,) in rows]


async def replace_operation(connections: Connections, operation: BulkOperation) -> bool:
    replaced = await connections.fetch_value(
        _REPLACE_OPERATION,
        operation.id,
        operation.updated_at,
        operation.version,
        operation.is_running,
        operation_text(operation),
    )
    return replaced is not None


async def forget_operations(connections: Connections, ended_before: Instant, limit: int) -> int:
    forgotten: int = await connections.fetch_value(_FORGET_OPERATIONS, ended_before, limit)
    return forgotten
