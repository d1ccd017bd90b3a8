"""Owns a fair share of the shards: joins the members, takes, recovers, leaves, steps down.

docs/architecture/shard-leases.md says why no two nodes act on a shard at the same time.
"""

import asyncio
import math
from collections.abc import Callable, Collection

import structlog
from msgspec.structs import replace

from duetime.background import BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.lateness.waits import WaitCause
from duetime.engine.announcer import Announcer
from duetime.engine.clocks.clock_watch import ClockWatch
from duetime.engine.cluster.handover import ShardHandover
from duetime.engine.cluster.members import Cluster, ClusterState, MemberWatch
from duetime.engine.cluster.shard_assignment import assign_shards
from duetime.engine.cluster.unfinished_leases import RECOVER_AT_ONCE, UnfinishedLeases
from duetime.engine.held_leases import HeldLeases
from duetime.engine.options import EngineOptions
from duetime.engine.wait_log import WaitLog
from duetime.ports.clock import Clock
from duetime.ports.leases import LeaseStore, ShardState
from duetime.ports.membership import (
    BEAT_SHARE,
    STEP_DOWN_SHARE,
    TAKE_OVER_SHARE,
    ClusterView,
    LostMember,
    Member,
    NodeFacts,
)
from duetime.ports.store import Leases, TimerStore

_log = structlog.get_logger()

LOOK_AGAIN_SECONDS = 0.02
"""Interval at which a node looks whether the hand-backs of a leaving shard are written."""

SHORTEST_TIMEOUT_SECONDS = 0.5


class ShardOwner(BackgroundLoop):
    """Beats, and takes, recovers, leaves and releases shards as the view of the cluster demands:

        free or of a dead member --claim, recover--> held --leave--> leaving --release--> free

    Attempts that are under way when a shard is released end under an unfinished lease. The next
    owner does not wait for them, and recovers them once that lease ends without them.

    Every instant that decides about ownership is monotonic time of this process.
    """

    name = "shard_owner"

    def __init__(
        self,
        store: TimerStore,
        leases: LeaseStore,
        cluster: Cluster,
        state: ClusterState,
        announcer: Announcer,
        clock: Clock,
        held: HeldLeases,
        handover: ShardHandover,
        facts: Callable[[], NodeFacts],
        clock_watch: ClockWatch,
        options: EngineOptions,
        wait_log: WaitLog,
    ) -> None:
        super().__init__(clock)
        self._wait_log = wait_log
        self._without_owner: dict[ShardNumber, WaitCause] = {}
        """Why shards that are being taken had no owner."""
        self._has_owned = False
        self._store = store
        self._leases = leases
        self._members = cluster.members
        self._signals = cluster.signals
        self._state = state
        self._announcer = announcer
        self._held = held
        self._handover = handover
        self._facts = facts
        self._clock_watch = clock_watch
        self._name = state.node
        lease_seconds = options.lease_seconds
        self._names = 0
        self._name_until_seconds = -math.inf
        self._beat_seconds = lease_seconds * BEAT_SHARE
        self._step_down_seconds = lease_seconds * STEP_DOWN_SHARE
        self._gap_seconds = lease_seconds * (TAKE_OVER_SHARE - STEP_DOWN_SHARE)
        self._watch = MemberWatch(
            lease_seconds * TAKE_OVER_SHARE,
            4 * self._beat_seconds,
            lambda member: member.node != state.node and cluster.is_gone(member.facts),
        )
        self._beat_timeout_seconds = max(1.5 * self._beat_seconds, SHORTEST_TIMEOUT_SECONDS)
        self._recovering: dict[ShardNumber, Epoch] = {}
        self._recovered = 0
        self._recovers_one_by_one = False
        self._is_member = False
        self._beat_at_seconds = 0.0
        self._leaving: dict[ShardNumber, int] = {}
        """The shards on their way to others, each with the outcomes to be written before."""
        self._unfinished = UnfinishedLeases(store, cluster.members, held, handover)
        self._assigned_from: tuple[list[ShardNumber], list[str]] = [], []
        self._owners: dict[ShardNumber, str] = {}
        self._wants_no_shards = False

    async def begin(self) -> None:
        """Join the members and take the free shards. Shards with much to recover are completed in
        the background. Raises `StoreUnavailable`."""
        self._held.valid_until_seconds = 0.0
        await self._beat()
        if self._recovering:
            await self._recover_some()

    def beat_soon(self) -> None:
        """Look at the members and shards now: something changed."""
        self._beat_at_seconds = 0.0
        self.wake()

    def leave_all(self) -> None:
        """Take no more shards, and hand over those that are held."""
        self._wants_no_shards = True
        self.beat_soon()

    async def end(self) -> None:
        """Release the shards still held, and leave the members. Abandons attempts under way."""
        await self.stop()
        await self._leases.release_shards(self._held.all)
        self._held.release(list(self._held.all))
        await self._members.leave(self._state.node)
        try:
            async with asyncio.timeout(SHORTEST_TIMEOUT_SECONDS):
                await self._signals.announce_shards_changed()
        except (StoreUnavailable, TimeoutError):
            # The signal is only a hint: the others look with their next beat.
            _log.debug("signal.lost")

    async def step(self) -> None:
        if self._clock.monotonic() >= self._beat_at_seconds:
            await self._beat()
        if self._leaving:
            await self._release_left()
        if self._recovering:
            await self._recover_some()
            return
        if self._unfinished.have_left_timers:
            await self._unfinished.recover_some()
            return
        until_beat_seconds = self._beat_at_seconds - self._clock.monotonic()
        if until_beat_seconds > 0:
            await self.wait(
                min(until_beat_seconds, LOOK_AGAIN_SECONDS) if self._leaving else until_beat_seconds
            )

    async def _beat(self) -> None:
        asked_seconds, asked_at = self._clock.monotonic(), self._clock.now()
        # Set before the call: a signal that arrives meanwhile asks for another beat.
        self._beat_at_seconds = asked_seconds + self._beat_seconds
        facts = replace(self._facts(), stopping=self._wants_no_shards)
        joins = not self._is_member
        if joins and asked_seconds >= self._name_until_seconds:
            self._take_new_name(asked_seconds)
        view = await self._heartbeat(facts, joins)
        now_seconds = self._clock.monotonic()
        if view.store_now is not None:
            self._clock_watch.measured(asked_at, self._clock.now(), view.store_now, now_seconds)
        self._state.view = view
        self._is_member = any(member.node == self._state.node for member in view.members)
        self._renew(view, asked_seconds)
        if not self._is_member:
            _log.warning("node.forgotten", node=self._state.node)
            self._name_until_seconds = -math.inf
            self.beat_soon()
            return
        alive = await self._forget_dead(view, now_seconds)
        await self._move_shards(view, alive)
        self._unfinished.watch(view, self._held.all.keys() | self._recovering.keys())
        await self._unfinished.finish(view, self._state.node)
        if joins:
            self._announcer.announce_shards_changed()

    async def _heartbeat(self, facts: NodeFacts, joins: bool) -> ClusterView:
        """Beat with a timeout: a late answer is worthless, and a new try may be in time."""
        try:
            async with asyncio.timeout(self._beat_timeout_seconds):
                return await self._members.heartbeat(self._state.node, facts, join=joins)
        except TimeoutError:
            self._beat_at_seconds = 0.0
            raise StoreUnavailable("a heartbeat was not answered in time") from None
        except StoreUnavailable:
            self._beat_at_seconds = 0.0
            raise

    def _take_new_name(self, asked_seconds: float) -> None:
        """Join under a name that no other node can believe dead.

        A node that joins again starts its beats over. Another node may still be counting the
        silence of an earlier member of that name, and could remove the new one while its leases
        count. Such an earlier member may come from a join whose answer was lost. So a name is used
        for joins only for a short time; leases from its last join expire before anyone can judge
        its first join dead.
        """
        self._names += 1
        self._state.node = self._name if self._names == 1 else f"{self._name}#{self._names}"
        self._name_until_seconds = asked_seconds + self._gap_seconds

    def _renew(self, view: ClusterView, asked_seconds: float) -> None:
        """Keep the shards that are still ours, for as long as no other node can take them."""
        epochs = {state.shard: state.epoch for state in view.shards}
        lost = [
            shard
            for shard, epoch in self._held.all.items()
            if epochs.get(shard) != epoch or not self._is_member
        ]
        if lost:
            _log.warning("shards.lost", node=self._state.node, shards=sorted(lost))
            self._held.lose(lost)
            self._stop_leaving(lost)
        if not self._is_member:
            self._held.finish(list(self._held.unfinished))
        self._recovering = {
            shard: epoch
            for shard, epoch in self._recovering.items()
            if epochs.get(shard) == epoch and self._is_member
        }
        were_valid = self._held.are_valid
        self._held.valid_until_seconds = asked_seconds + self._step_down_seconds
        if not were_valid and self._held.all:
            _log.warning("leases.resumed", node=self._state.node, shards=len(self._held))
            self._handover.shards_taken()

    async def _forget_dead(self, view: ClusterView, now_seconds: float) -> list[Member]:
        """Take dead members off the list; returns the others.

        A dead member's shards are free only once it is off the list, and it does not come off
        the list if it has beaten meanwhile: so the store decides between that member and this
        node.
        """
        dead = {member.node for member in self._watch.look(view.members, now_seconds)}
        for member in view.members:
            if member.node in dead:
                if await self._members.forget_member(member.node, seen_beat=member.beat):
                    _log.warning("node.dead", node=member.node, beat=member.beat)
                    self._state.lost.append(LostMember(member.node, self._clock.now()))
                    if any(lease.node == member.node for lease in view.unfinished):
                        self.beat_soon()
                else:
                    # It has beaten, or another node was faster: a new look will show.
                    dead.discard(member.node)
                    self.beat_soon()
        return [member for member in view.members if member.node not in dead]

    async def _move_shards(self, view: ClusterView, alive: Collection[Member]) -> None:
        present = {member.node for member in alive}
        eligible = sorted(member.node for member in alive if not member.facts.stopping)
        owners = self._assigned([state.shard for state in view.shards], eligible)
        mine = {shard for shard, node in owners.items() if node == self._state.node}
        self._stay(mine.intersection(self._leaving))
        await self._leave(self._held.all.keys() - mine)
        for shard in self._recovering.keys() - mine:
            del self._recovering[shard]
        ours = self._held.all.keys() | self._recovering.keys()
        not_held = [state for state in view.shards if state.shard not in ours]
        free = {
            state.shard: state.epoch
            for state in not_held
            if state.shard in mine
            and (state.owner is None or state.owner not in present or self._lost_track_of(state))
        }
        if free:
            for state in view.shards:
                if state.shard in free:
                    self._without_owner[state.shard] = self._why_free(state, present)
            await self._take(free)
        # Taken or released before, but the call or its answer was lost: no other node may take
        # them.
        stray = {
            state.shard: state.epoch
            for state in not_held
            if state.owner == self._state.node and state.shard not in free
        }
        if stray:
            await self._release(stray)

    def _why_free(self, state: ShardState, present: Collection[str]) -> WaitCause:
        if not self._has_owned and len(present) <= 1:
            return WaitCause.NODE_DOWN
        return WaitCause.HANDOVER if state.owner is None else WaitCause.FAILOVER

    def _lost_track_of(self, state: ShardState) -> bool:
        """The shard is this node's, but it does not know. A shard with an unfinished lease is on
        its way to others: without that lease in the store, nobody may take it."""
        unfinished = self._held.unfinished
        return state.owner == self._state.node and (state.shard, state.epoch) not in unfinished

    def _assigned(self, shards: list[ShardNumber], eligible: list[str]) -> dict[ShardNumber, str]:
        # With thousands of shards this takes tens of milliseconds, too long for every beat.
        if self._assigned_from != (shards, eligible):
            self._assigned_from = shards, eligible
            self._owners = assign_shards(shards, eligible)
        return self._owners

    async def _take(self, free: dict[ShardNumber, Epoch]) -> None:
        """Claim the shards. Nothing is sent for them before their timers are recovered."""
        self._recovering |= await self._leases.claim_shards(free, owner=self._state.node)

    async def _recover_some(self) -> None:
        """Recover a limited number of timers, because beats have to go on. If there are many, go
        shard by shard, so that the first shards can work while others wait."""
        shards = list(self._recovering)[: 1 if self._recovers_one_by_one else None]
        leases = {shard: self._recovering[shard] for shard in shards}
        recovered = await self._store.recover(leases, limit=RECOVER_AT_ONCE)
        self._recovered += len(recovered)
        if recovered:
            self._recovers_one_by_one |= len(recovered) == RECOVER_AT_ONCE
            return
        for shard in leases:
            del self._recovering[shard]
        self._has_owned, now = True, self._clock.now()
        for shard in leases:
            cause = self._without_owner.pop(shard, WaitCause.HANDOVER)
            self._wait_log.shards_taken([shard], now, cause)
        self._held.take(leases)
        self._handover.shards_taken()
        _log.info(
            "shards.taken",
            node=self._state.node,
            shards=sorted(leases),
            timers_recovered=self._recovered,
        )
        self._recovered = 0
        self._recovers_one_by_one &= bool(self._recovering)

    async def _leave(self, shards: set[ShardNumber]) -> None:
        leaving = shards - self._leaving.keys()
        if leaving:
            try:
                async with asyncio.timeout(self._beat_seconds):
                    await self._handover.stop_claiming(leaving)
            except TimeoutError:
                # A claim hangs. The beats must not: the next one tries again.
                return
            self._leaving |= dict.fromkeys(leaving, self._handover.outcomes())

    async def _release_left(self) -> None:
        """Release the leaving shards whose hand-backs are written."""
        leases = {
            shard: epoch
            for shard, epoch in self._held.leaving.items()
            if self._handover.are_written(self._leaving[shard])
        }
        if not leases:
            return
        busy = self._handover.busy_leases()
        unfinished = {shard for shard, epoch in leases.items() if (shard, epoch) in busy}
        if not all(member.facts.lets_finish for member in self._state.view.members):
            # A node of an earlier release would recover what is under way here.
            leases = {shard: epoch for shard, epoch in leases.items() if shard not in unfinished}
            unfinished = set()
        if leases:
            # First here: the shards may be free for others even if the answer is lost.
            self._held.hand_over(leases, unfinished=unfinished)
            self._stop_leaving(leases)
            await self._release(leases)

    async def _release(self, leases: Leases) -> None:
        unfinished = {
            shard: epoch
            for shard, epoch in leases.items()
            if (shard, epoch) in self._held.unfinished
        }
        if unfinished:
            await self._members.hand_over(self._state.node, unfinished)
        if finished := {shard: leases[shard] for shard in leases.keys() - unfinished.keys()}:
            await self._leases.release_shards(finished)
        _log.info(
            "shards.released",
            node=self._state.node,
            shards=sorted(leases),
            unfinished=sorted(unfinished),
        )
        self._announcer.announce_shards_changed()

    def _stop_leaving(self, shards: Collection[ShardNumber]) -> None:
        for shard in shards:
            self._leaving.pop(shard, None)

    def _stay(self, shards: Collection[ShardNumber]) -> None:
        if shards:
            self._held.stay(shards)
            self._stop_leaving(shards)
            self._handover.shards_taken()
