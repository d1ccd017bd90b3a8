"""The members of a cluster, and their unfinished leases."""

from collections.abc import Collection

from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.membership import Member, NodeFacts, UnfinishedLease


class MemberTable:
    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._unfinished: dict[tuple[ShardNumber, Epoch], str] = {}

    def __contains__(self, node: str) -> bool:
        return node in self._members

    @property
    def members(self) -> list[Member]:
        return [self._members[name] for name in sorted(self._members)]

    @property
    def unfinished(self) -> list[UnfinishedLease]:
        leases = self._unfinished.items()
        return sorted(UnfinishedLease(shard, epoch, node) for (shard, epoch), node in leases)

    def beat(self, node: str, facts: NodeFacts, *, join: bool) -> None:
        member = self._members.get(node)
        if member is not None or join:
            self._members[node] = Member(node, 1 if member is None else member.beat + 1, facts)

    def remove(self, node: str, *, seen_beat: int | None = None) -> bool:
        """Remove the member, only with this beat if one is given, and end its unfinished leases."""
        member = self._members.get(node)
        if member is None or seen_beat not in (None, member.beat):
            return False
        del self._members[node]
        self.finish(node, [lease for lease, holder in self._unfinished.items() if holder == node])
        return True

    def is_unfinished(self, shard: ShardNumber, epoch: Epoch) -> bool:
        return (shard, epoch) in self._unfinished

    def begin_unfinished(self, node: str, shard: ShardNumber, epoch: Epoch) -> None:
        self._unfinished[shard, epoch] = node

    def finish(self, node: str, leases: Collection[tuple[ShardNumber, Epoch]]) -> None:
        for lease in leases:
            if self._unfinished.get(lease) == node:
                del self._unfinished[lease]
