"""Ownership of shards: of all of them by the only process, or of a share by a node of a cluster."""

import asyncio

import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.domain.lateness.waits import WaitCause
from duetime.engine.announcer import Announcer
from duetime.engine.cluster.handover import ShardHandover
from duetime.engine.cluster.shard_owner import ShardOwner
from duetime.engine.held_leases import HeldLeases
from duetime.engine.wait_log import WaitLog
from duetime.ports.clock import Clock
from duetime.ports.leases import LeaseStore
from duetime.ports.signals import NodeSignals, SignalReceiver
from duetime.ports.store import Leases, TimerStore

_log = structlog.get_logger()


class SoleOwner:
    """Owns all shards of a store that serves one process."""

    is_working = True

    def __init__(
        self,
        store: TimerStore,
        leases: LeaseStore,
        held: HeldLeases,
        handover: ShardHandover,
        wait_log: WaitLog,
        clock: Clock,
        *,
        node: str,
    ) -> None:
        self._wait_log = wait_log
        self._clock = clock
        self._store = store
        self._leases = leases
        self._held = held
        self._handover = handover
        self._node = node
        self._takes_shards = False
        self._taking_shards = asyncio.Lock()

    async def begin(self, receiver: SignalReceiver) -> None:
        async with self._taking_shards:
            taken = await take_all_shards(self._store, self._leases, self._node)
            self._wait_log.shards_taken(taken, self._clock.now(), WaitCause.NODE_DOWN)
            self._held.take(taken)
            self._takes_shards = True

    async def take_new_shards(self) -> None:
        async with self._taking_shards:
            if self._takes_shards:
                taken = await _take_shards(
                    self._store, self._leases, self._node, held=self._held.all
                )
                self._held.take(taken)
                self._handover.shards_taken()

    def leave_all(self) -> None:
        """Take no more shards."""
        self._takes_shards = False

    async def end(self) -> None:
        async with self._taking_shards:
            await self._leases.release_shards(self._held.all)
            self._held.release(self._held.all)

    async def close(self) -> None: ...

    def shards_changed(self) -> None: ...


class SharedOwner:
    """Owns a share of the shards, and takes part in the cluster."""

    def __init__(self, signals: NodeSignals, owner: ShardOwner, announcer: Announcer) -> None:
        self._signals = signals
        self._owner = owner
        self._announcer = announcer

    @property
    def is_working(self) -> bool:
        return self._owner.is_working

    async def begin(self, receiver: SignalReceiver) -> None:
        await self._signals.start(receiver)
        try:
            await self._owner.begin()
        except BaseException:
            await self._signals.stop()
            raise
        self._owner.start()
        self._announcer.start()

    async def take_new_shards(self) -> None:
        self._owner.beat_soon()
        self._announcer.announce_shards_changed()

    def leave_all(self) -> None:
        self._owner.leave_all()

    async def end(self) -> None:
        await self._owner.end()

    async def close(self) -> None:
        await self._owner.stop()
        await self._announcer.stop()
        await self._signals.stop()

    def shards_changed(self) -> None:
        self._owner.beat_soon()


async def take_all_shards(store: TimerStore, leases: LeaseStore, owner: str) -> Leases:
    """Own every shard; timers left executing under earlier epochs become pending again."""
    return await _take_shards(store, leases, owner, held={})


async def _take_shards(
    store: TimerStore, leases: LeaseStore, owner: str, *, held: Leases
) -> Leases:
    """Own the shards that are not held yet."""
    seen = {state.shard: state.epoch for state in await leases.shards() if state.shard not in held}
    if not seen:
        return {}
    taken = await leases.claim_shards(seen, owner=owner)
    if taken.keys() != seen.keys():
        raise StoreUnavailable("some shards were taken by another owner")
    recovered = 0
    while some := await store.recover(taken):
        recovered += len(some)
    if recovered:
        _log.info("timers.recovered", count=recovered)
    return taken
