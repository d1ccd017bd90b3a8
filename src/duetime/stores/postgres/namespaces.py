"""Namespaces and their options."""

from collections.abc import Sequence

import msgspec

from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.stores.postgres.connections import Connections, Row
from duetime.stores.postgres.tables import storable

_ADD = """
    INSERT INTO namespaces (name, num_shards, options) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""

_GET = "SELECT name, num_shards, options FROM namespaces WHERE name = $1"

_CHANGE = "UPDATE namespaces SET options = $2 WHERE name = $1 RETURNING name, num_shards, options"

_ALL = 'SELECT name, num_shards, options FROM namespaces ORDER BY name COLLATE "C"'

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

_encode = msgspec.json.Encoder().encode
_decode_options = msgspec.json.Decoder(NamespaceOptions).decode


async def add_namespace(connections: Connections, namespace: Namespace) -> Namespace:
    options = _encode(namespace.options).decode()
    async with connections.borrow() as connection, connection.transaction():
        await connection.execute(_ADD, namespace.name, namespace.num_shards, options)
        row = await connection.fetchrow(_GET, namespace.name)
        assert row is not None
        held = _namespace_of(row)
        await connection.execute(_ADD_SHARDS, held.num_shards)
    return held


async def change_namespace(
    connections: Connections, name: str, options: NamespaceOptions
) -> Namespace | None:
    if storable(name) != name:
        return None
    row = await connections.fetch_one(_CHANGE, name, _encode(options).decode())
    return None if row is None else _namespace_of(row)


async def read_namespaces(connections: Connections) -> Sequence[Namespace]:
    return [_namespace_of(row) for row in await connections.fetch(_ALL)]


def _namespace_of(row: Row) -> Namespace:
    name, num_shards, options = row
    return Namespace(name, num_shards, _decode_options(options))
