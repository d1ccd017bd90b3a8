"""Unfinished leases: those that end here, and those of others in the shards of this node."""

import structlog

from duetime.domain.keys import Epoch, ShardNumber
from duetime.engine.cluster.handover import ShardHandover
from duetime.engine.held_leases import HeldLeases
from duetime.ports.membership import ClusterView, MemberStore
from duetime.ports.store import TimerStore

_log = structlog.get_logger()

RECOVER_AT_ONCE = 1_000
"""Timers recovered in one write."""


class UnfinishedLeases:
    """Ends the unfinished leases of this node as soon as their attempts have ended.

    When the unfinished lease of another node ends in a shard of this one, timers may be left that
    it did not settle: the other node died, gave up, or lost track of them. They are recovered.
    """

    def __init__(
        self, store: TimerStore, members: MemberStore, held: HeldLeases, handover: ShardHandover
    ) -> None:
        self._store = store
        self._members = members
        self._held = held
        self._handover = handover
        self._of_others: set[tuple[ShardNumber, Epoch]] = set()
        self._left_behind: set[ShardNumber] = set()

    @property
    def have_left_timers(self) -> bool:
        """Some may have ended without settling all their timers."""
        return bool(self._left_behind)

    def watch(self, view: ClusterView, ours: set[ShardNumber]) -> None:
        """Notice which unfinished leases in the shards of this node have ended. In a shard that is
        owned none begins, so those in the view with which it was taken are all."""
        listed = {(lease.shard, lease.epoch) for lease in view.unfinished}
        ended = {shard for shard, _ in self._of_others - listed}
        self._left_behind = (self._left_behind | ended) & ours
        self._of_others = {lease for lease in listed if lease[0] in ours}

    async def finish(self, view: ClusterView, node: str) -> None:
        """End those of this node without attempts under way, and those that nobody here knows."""
        held = self._held.unfinished
        recorded = {(lease.shard, lease.epoch) for lease in view.unfinished if lease.node == node}
        if not (recorded or held):
            return
        ended = recorded.union(held) - self._handover.busy_leases().intersection(held)
        if ended:
            await self._members.finish(node, ended)
            self._held.finish(ended)

    async def recover_some(self) -> None:
        held = self._held.all
        leases = {shard: held[shard] for shard in self._left_behind if shard in held}
        recovered = await self._store.recover(leases, limit=RECOVER_AT_ONCE) if leases else []
        if recovered:
            _log.info("timers.recovered", count=len(recovered))
            self._handover.shards_taken()
        else:
            self._left_behind.clear()
