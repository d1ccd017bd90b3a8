"""Namespaces, and the shards that come with them."""

import msgspec

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.stores.sqlite.connections import Statements, Transaction

_ADD_NAMESPACE = """
    INSERT INTO namespaces (name, num_shards, options) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
"""

_GET_NAMESPACE = "SELECT name, num_shards, options FROM namespaces WHERE name = ?"

_CHANGE_NAMESPACE = """
    UPDATE namespaces SET options = ?2 WHERE name = ?1 RETURNING name, num_shards, options
"""

# SQLite compares UTF-8 bytes, which gives the order of code points.
_NAMESPACES = "SELECT name, num_shards, options FROM namespaces ORDER BY name"

_ADD_SHARDS = """
    WITH RECURSIVE numbers (shard) AS (
        SELECT 0 UNION ALL SELECT shard + 1 FROM numbers WHERE shard + 1 < ?1)
    INSERT INTO shards (shard, epoch) SELECT shard, 0 FROM numbers WHERE true
    ON CONFLICT DO NOTHING
"""

_encode = msgspec.json.Encoder().encode
_decode_options = msgspec.json.Decoder(NamespaceOptions).decode


def add_namespace(transaction: Transaction, namespace: Namespace) -> Namespace:
    options = _encode(namespace.options).decode()
    transaction.execute(_ADD_NAMESPACE, namespace.name, namespace.num_shards, options)
    kept = _namespace(*transaction.first(_GET_NAMESPACE, namespace.name))
    transaction.execute(_ADD_SHARDS, kept.num_shards)
    return kept


def change_namespace(
    transaction: Transaction, name: str, options: NamespaceOptions
) -> Namespace | None:
    row = transaction.first(_CHANGE_NAMESPACE, name, _encode(options).decode())
    return None if row is None else _namespace(*row)


def read_namespaces(statements: Statements) -> list[Namespace]:
    return [_namespace(*row) for row in statements.execute(_NAMESPACES)]


def _namespace(name: str, num_shards: int, options: str) -> Namespace:
    return Namespace(name, num_shards, _decode_options(options))
