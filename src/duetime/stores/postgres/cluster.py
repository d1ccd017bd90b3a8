"""Shards with their leases, and members with their heartbeats."""

from collections.abc import Collection, Mapping

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, Member, NodeFacts, UnfinishedLease
from duetime.ports.store import Leases
from duetime.stores.postgres.connections import Connection, Connections, Row

_SHARDS = "SELECT shard, epoch, owner FROM shards ORDER BY shard"

# Values: $1 the shards, $2 the epochs they were seen with, indexed by shard number.
#
# Locks the shards in their order, and then the fences in theirs, as all statements do. A write of
# the former owner holds fences: this statement waits for it, and later writes find the new epoch.
CLAIM_SHARDS = """
    WITH locked AS MATERIALIZED (
        SELECT shard, epoch FROM shards
        WHERE shard = ANY ($1::integer[]) ORDER BY shard FOR NO KEY UPDATE
    ), free AS MATERIALIZED (
        SELECT shard FROM locked WHERE epoch = ($2::bigint[])[shard + 1]
    ), fence AS MATERIALIZED (
        SELECT shard FROM shard_fences
        WHERE shard = ANY (ARRAY(SELECT shard FROM free)) AND role = ANY ('{0,1}')
        ORDER BY role, shard FOR NO KEY UPDATE
    ), raised AS (
        UPDATE shard_fences SET epoch = ($2::bigint[])[shard + 1] + 1
        WHERE shard = ANY (ARRAY(SELECT DISTINCT shard FROM fence)) AND role = ANY ('{0,1}')
    )
    UPDATE shards SET epoch = epoch + 1, owner = $3
    WHERE shard = ANY (ARRAY(SELECT DISTINCT shard FROM fence))
    RETURNING shard, epoch
"""

_RELEASE_SHARDS = """
    WITH mine AS MATERIALIZED (
        SELECT shard, epoch FROM shards
        WHERE shard = ANY ($1::integer[]) ORDER BY shard FOR NO KEY UPDATE
    )
    UPDATE shards SET owner = NULL
    WHERE shard = ANY (ARRAY(SELECT shard FROM mine WHERE epoch = ($2::bigint[])[shard + 1]))
    RETURNING shard
"""

# Values as in `_RELEASE_SHARDS`, and $3 the node. The lock on the member keeps it on the list until
# the rows that refer to it are committed.
_HAND_OVER = """
    WITH mine AS MATERIALIZED (
        SELECT shard, epoch FROM shards
        WHERE shard = ANY ($1::integer[]) ORDER BY shard FOR NO KEY UPDATE
    ), member AS MATERIALIZED (
        SELECT node FROM members WHERE node = $3 FOR KEY SHARE
    ), unfinished AS (
        INSERT INTO unfinished_leases (shard, epoch, node)
        SELECT shard, epoch, node FROM mine CROSS JOIN member
        WHERE epoch = ($2::bigint[])[shard + 1]
        ON CONFLICT DO NOTHING
    )
    UPDATE shards SET owner = NULL
    WHERE shard = ANY (ARRAY(SELECT shard FROM mine WHERE epoch = ($2::bigint[])[shard + 1]))
      AND EXISTS (SELECT FROM member)
    RETURNING shard
"""

_FINISH = """
    DELETE FROM unfinished_leases AS lease
    USING unnest($2::integer[], $3::bigint[]) AS ended (shard, epoch)
    WHERE lease.node = $1 AND lease.shard = ended.shard AND lease.epoch = ended.epoch
"""


async def read_shards(connections: Connections) -> list[ShardState]:
    return [
        ShardState(ShardNumber(shard), Epoch(epoch), owner)
        for shard, epoch, owner in await connections.fetch(_SHARDS)
    ]


async def claim_shards(
    connections: Connections, seen: Mapping[ShardNumber, Epoch], owner: str
) -> dict[ShardNumber, Epoch]:
    rows = await connections.fetch(CLAIM_SHARDS, list(seen), epochs_by_number(seen), owner)
    return {ShardNumber(shard): Epoch(epoch) for shard, epoch in rows}


async def release_shards(connections: Connections, leases: Leases) -> set[ShardNumber]:
    rows = await connections.fetch(_RELEASE_SHARDS, list(leases), epochs_by_number(leases))
    return {ShardNumber(shard) for (shard,) in rows}


async def hand_over(connections: Connections, node: str, leases: Leases) -> set[ShardNumber]:
    rows = await connections.fetch(_HAND_OVER, list(leases), epochs_by_number(leases), node)
    return {ShardNumber(shard) for (shard,) in rows}


async def finish(
    connections: Connections, node: str, leases: Collection[tuple[ShardNumber, Epoch]]
) -> None:
    shards, epochs = [shard for shard, _ in leases], [epoch for _, epoch in leases]
    await connections.fetch_value(_FINISH, node, shards, epochs)


def epochs_by_number(leases: Leases) -> list[int]:
    """The epochs indexed by shard number; -1, which is no epoch, for all other shards."""
    return [leases.get(ShardNumber(number), -1) for number in range(max(leases, default=-1) + 1)]


_VIEW_COLUMNS = """
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    ARRAY(SELECT node FROM listed ORDER BY node), ARRAY(SELECT beat FROM listed ORDER BY node),
    ARRAY(SELECT facts FROM listed ORDER BY node),
    ARRAY(SELECT shard FROM shards ORDER BY shard), ARRAY(SELECT epoch FROM shards ORDER BY shard),
    ARRAY(SELECT owner FROM shards ORDER BY shard),
    ARRAY(SELECT shard FROM unfinished_leases ORDER BY shard, epoch),
    ARRAY(SELECT epoch FROM unfinished_leases ORDER BY shard, epoch),
    ARRAY(SELECT node FROM unfinished_leases ORDER BY shard, epoch)
"""

_JOIN = """
    INSERT INTO members (node, beat, facts) VALUES ($1, 1, $2)
    ON CONFLICT (node) DO UPDATE SET beat = members.beat + 1, facts = excluded.facts
    RETURNING node, beat, facts
"""

_BEAT = "UPDATE members SET beat = beat + 1, facts = $2 WHERE node = $1 RETURNING node, beat, facts"


def _view_after(beat: str) -> str:
    """The cluster after `beat`. The snapshot has the node's row from before, so it is replaced."""
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
    now, nodes, beats, facts, shards, epochs, owners, *unfinished = row
    return ClusterView(
        members=[
            Member(node, beat, _decode_facts(fact))
            for node, beat, fact in zip(nodes, beats, facts, strict=True)
        ],
        shards=[
            ShardState(ShardNumber(shard), Epoch(epoch), owner)
            for shard, epoch, owner in zip(shards, epochs, owners, strict=True)
        ],
        unfinished=[
            UnfinishedLease(ShardNumber(shard), Epoch(epoch), node)
            for shard, epoch, node in zip(*unfinished, strict=True)
        ],
        store_now=Instant(now),
    )
