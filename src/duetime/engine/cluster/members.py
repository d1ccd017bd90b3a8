"""The members of a cluster: what joining takes, the latest view, and which members are alive."""

from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct

from duetime.domain.keys import ShardNumber
from duetime.ports.membership import ClusterView, LostMember, Member, MemberStore, NodeFacts
from duetime.ports.signals import NodeSignals

MOST_LOST = 8
"""Lost members that are remembered, and told with every beat."""


class Cluster(Struct, frozen=True, kw_only=True):
    """The ports through which an engine shares its store with others.

    `is_gone` is True when a member's process is known not to exist any more, and False when that
    is not known.
    """

    members: MemberStore
    signals: NodeSignals
    is_gone: Callable[[NodeFacts], bool] = lambda facts: False


class ClusterState:
    """The name that this node has among the members now, and the latest view of them."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.view = ClusterView([], [])
        self.lost: deque[LostMember] = deque(maxlen=MOST_LOST)
        """The last members that this node took off the list."""


def owner_of(shard: ShardNumber, view: ClusterView) -> tuple[str | None, str | None]:
    """The member that owns the shard in this view, and its URL; None if no member does."""
    owner = next((state.owner for state in view.shards if state.shard == shard), None)
    facts = next((member.facts for member in view.members if member.node == owner), None)
    return (None, None) if facts is None else (owner, facts.url or None)


class MemberWatch:
    """A member is dead when its beat has stood still for too long by the observer's monotonic
    time, or when its process is known not to exist any more.

    Only time in which the observer itself could look counts: when the store was away, the beats
    of all others stood still too, and every member gets a new chance.
    """

    def __init__(
        self,
        dead_after_seconds: float,
        longest_gap_seconds: float,
        is_gone: Callable[[Member], bool],
    ) -> None:
        self._dead_after_seconds = dead_after_seconds
        self._longest_gap_seconds = longest_gap_seconds
        self._is_gone = is_gone
        self._stands_since: dict[str, tuple[int, float]] = {}
        self._looked_seconds: float | None = None

    def look(self, members: Sequence[Member], now_seconds: float) -> list[Member]:
        """Take a fresh view into account; returns the dead members."""
        if self._looked_seconds is None or (
            now_seconds - self._looked_seconds > self._longest_gap_seconds
        ):
            self._stands_since.clear()
        self._looked_seconds = now_seconds
        stood = self._stands_since
        self._stands_since = {}
        for member in members:
            beat, since_seconds = stood.get(member.node, (None, now_seconds))
            if beat != member.beat:
                since_seconds = now_seconds
            self._stands_since[member.node] = member.beat, since_seconds
        return [member for member in members if self._is_dead(member, now_seconds)]

    def _is_dead(self, member: Member, now_seconds: float) -> bool:
        _, since_seconds = self._stands_since[member.node]
        return now_seconds - since_seconds >= self._dead_after_seconds or self._is_gone(member)
