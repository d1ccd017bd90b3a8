"""The report on the members of a cluster and on the shards that each of them owns."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct

from duetime.domain.keys import ShardNumber
from duetime.ports.leases import ShardState
from duetime.ports.membership import MOST_TOLD_PAUSES, Member, NodeFacts, UnfinishedLease


class MemberReport(Struct, frozen=True, kw_only=True):
    """`shards` is the number that the member owns."""

    node: str
    facts: NodeFacts
    shards: int
    is_answering: bool = False
    """Whether this is the process that made the report."""


class ClusterReport(Struct, frozen=True, kw_only=True):
    """The cluster as one process last saw it. A store that serves one process has one member.

    `owners` has the number of each shard's owner among the members, or None for a shard without a
    living owner, in the order of the shards.
    """

    node: str
    is_shared: bool
    members: Sequence[MemberReport]
    owners: Sequence[int | None]
    unfinished: Sequence[UnfinishedLease] = ()

    @property
    def without_owner(self) -> Sequence[ShardNumber]:
        return [ShardNumber(shard) for shard, owner in enumerate(self.owners) if owner is None]

    @property
    def waiting(self) -> int:
        """The timers that wait for paused endpoints or behind open breakers, as far as the members
        tell."""
        return sum(
            sum(each.facts.put_off.values()) + sum(group.timers for group in each.facts.held)
            for each in self.members
        )

    @property
    def put_off_elsewhere(self) -> Counter[str]:
        """The timers of other members that wait for paused endpoints, as far as they are told."""
        told: Counter[str] = Counter()
        for facts in self._others:
            told.update(facts.put_off)
        return told

    @property
    def tells_all_put_off(self) -> bool:
        return all(len(facts.put_off) < MOST_TOLD_PAUSES for facts in self._others)

    @property
    def _others(self) -> list[NodeFacts]:
        return [member.facts for member in self.members if not member.is_answering]


def cluster_report(
    node: str,
    members: Sequence[Member],
    shards: Sequence[ShardState],
    unfinished: Sequence[UnfinishedLease] = (),
    *,
    is_shared: bool,
) -> ClusterReport:
    places = {member.node: place for place, member in enumerate(members)}
    owned = Counter(state.owner for state in shards)
    by_shard = sorted(shards, key=attrgetter("shard"))
    owners = [places.get(state.owner or "") for state in by_shard]
    return ClusterReport(
        node=node,
        is_shared=is_shared,
        members=[
            MemberReport(
                node=member.node,
                facts=member.facts,
                shards=owned[member.node],
                is_answering=member.node == node,
            )
            for member in members
        ],
        owners=owners,
        unfinished=unfinished,
    )
