"""The members and their heartbeats."""

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, Member, NodeFacts
from duetime.stores.postgres.connections import Connection, Connections, Row

_VIEW_COLUMNS = """
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    ARRAY(SELECT node FROM listed ORDER BY node), ARRAY(SELECT beat FROM listed ORDER BY node),
    ARRAY(SELECT facts FROM listed ORDER BY node),
    ARRAY(SELECT shard FROM shards ORDER BY shard), ARRAY(SELECT epoch FROM shards ORDER BY shard),
    ARRAY(SELECT owner FROM shards ORDER BY shard)
"""

_JOIN = """
    INSERT INTO members (node, beat, facts) VALUES ($1, 1, $2)
    ON CONFLICT (node) DO UPDATE SET beat = members.beat + 1, facts = excluded.facts
    RETURNING node, beat, facts
"""

_BEAT = "UPDATE members SET beat = beat + 1, facts = $2 WHERE node = $1 RETURNING node, beat, facts"


def _view_after(beat: str) -> str:
    """The snapshot knows only the beat before; the node's own row is put in its place."""
    return f"""
        WITH beaten AS ({beat}), listed AS MATERIALIZED (
            SELECT node, beat, facts FROM members WHERE node <> $1
            UNION ALL SELECT node, beat, facts FROM beaten
        )
        SELECT {_VIEW_COLUMNS}
    """


_VIEW_AFTER_JOIN = _view_after(_JOIN)
_VIEW_AFTER_BEAT = _view_after(_BEAT)

_VIEW = f"WITH listed AS (SELECT node, beat, facts FROM members) SELECT {_VIEW_COLUMNS}"

_LEAVE = "DELETE FROM members WHERE node = $1"

_FORGET = "DELETE FROM members WHERE node = $1 AND beat = $2 RETURNING beat"

_encode = msgspec.json.Encoder().encode
_decode_facts = msgspec.json.Decoder(NodeFacts).decode


async def heartbeat(
    connections: Connections, node: str, facts: NodeFacts, *, join: bool
) -> ClusterView:
    statement = _VIEW_AFTER_JOIN if join else _VIEW_AFTER_BEAT
    row = await connections.fetch_one(statement, node, _encode(facts).decode())
    assert row is not None
    return _view_of(row)


async def read_view(connection: Connection) -> ClusterView:
    row = await connection.fetchrow(_VIEW)
    assert row is not None
    return _view_of(row)


async def leave(connections: Connections, node: str) -> None:
    await connections.fetch_value(_LEAVE, node)


async def forget_member(connections: Connections, node: str, seen_beat: int) -> bool:
    return await connections.fetch_value(_FORGET, node, seen_beat) is not None


def _view_of(row: Row) -> ClusterView:
    now, nodes, beats, facts, shards, epochs, owners = row
    return ClusterView(
        members=[
            Member(node, beat, _decode_facts(fact))
            for node, beat, fact in zip(nodes, beats, facts, strict=True)
        ],
        shards=[
            ShardState(ShardNumber(shard), Epoch(epoch), owner)
            for shard, epoch, owner in zip(shards, epochs, owners, strict=True)
        ],
        store_now=Instant(now),
    )
