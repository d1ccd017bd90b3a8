"""A cluster as one JSON document. The names of its fields are documented and stay."""

from collections import Counter

from duetime.cli.output.cluster_tables import lag_ms
from duetime.domain.instants import Instant, format_instant
from duetime.ports.inspection import ClusterFacts
from duetime.ports.leases import ShardState
from duetime.ports.membership import Member


def cluster_document(
    facts: ClusterFacts, now: Instant, *, skew_limit_ms: float, silent: set[str] | None = None
) -> dict[str, object]:
    """`silent` are the members whose beats stood still; None when nobody can tell."""
    members, shards = facts.view.members, facts.view.shards
    present = {member.node for member in members}
    owned = Counter(state.owner for state in shards)
    return {
        "now": format_instant(now),
        "members": [
            _member(
                member,
                owned[member.node],
                skew_limit_ms,
                None if silent is None else member.node not in silent,
            )
            for member in members
        ],
        "shards": [_shard(state, facts, now, state.owner in present) for state in shards],
    }


def _member(
    member: Member, shards_owned: int, skew_limit_ms: float, is_alive: bool | None
) -> dict[str, object]:
    facts = member.facts
    offset_ms = facts.clock_offset_ms
    return {
        "node": member.node,
        "host": facts.host,
        "pid": facts.pid,
        "version": facts.version,
        "url": facts.url,
        "started_at": format_instant(facts.started_at) if facts.started_at else None,
        "stopping": facts.stopping,
        "shards_owned": shards_owned,
        "in_flight": facts.in_flight,
        "lateness_ms": facts.lateness_ms,
        "clock_offset_ms": offset_ms,
        "clock_skewed": offset_ms is not None and abs(offset_ms) > skew_limit_ms,
        "beat": member.beat,
        "alive": is_alive,
    }


def _shard(
    state: ShardState, facts: ClusterFacts, now: Instant, owner_is_member: bool
) -> dict[str, object]:
    first_due = facts.first_due.get(state.shard)
    return {
        "shard": state.shard,
        "owner": state.owner,
        "owner_is_member": owner_is_member,
        "epoch": state.epoch,
        "first_due_at": None if first_due is None else format_instant(first_due),
        "lag_ms": lag_ms(facts, state.shard, now),
    }
