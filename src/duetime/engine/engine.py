"""The engine: its parts, started and stopped in order."""

import asyncio
from collections.abc import Mapping

import structlog
from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.engine.announcer import Announcer
from duetime.engine.clock_watch import ClockWatch
from duetime.engine.cluster.cluster import Cluster
from duetime.engine.cluster.handover import ShardHandover
from duetime.engine.cluster.held_leases import HeldLeases
from duetime.engine.cluster.shard_owner import ShardOwner
from duetime.engine.cluster.sole_owner import take_all_shards, take_other_shards
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.due_reader import DueReader
from duetime.engine.lanes.quota import Quotas
from duetime.engine.lanes.slots import Slots
from duetime.engine.pruner import Pruner
from duetime.engine.settler import Settler
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.endpoints import EndpointStatus
from duetime.ports.leases import LeaseStore
from duetime.ports.membership import NodeFacts
from duetime.ports.namespaces import NamespaceView, NoNamespaces
from duetime.ports.signals import NodeSignals
from duetime.ports.store import TimerStore

_log = structlog.get_logger()


SHORTEST_SETTLING_GRACE_SECONDS = 1.0
"""Outcomes that are not recorded are repeated after the next start, so a store that is away for
a moment gets a second chance even when the attempts took all of the grace."""


class EngineOptions(Struct, frozen=True, kw_only=True):
    """`retention_seconds` is for namespaces without a retention of their own; None when their
    finished timers are kept forever. `owner` is the name of this process among all that ever
    share the store; `facts` is what it tells of itself."""

    owner: str
    horizon_ms: float = 50.0
    poll_seconds: float = 5.0
    batch_size: int = 500
    concurrency: int = 4_096
    concurrency_per_endpoint: int = 1_024
    retention_seconds: float | None = None
    lease_seconds: float = 10.0
    clock_skew_limit_ms: float = 500.0
    facts: NodeFacts = NodeFacts()


class Engine:
    """Implements the wake-ups port for the front doors of this process, and receives the
    signals of other nodes. Without a cluster it is the only one on its store."""

    def __init__(
        self,
        store: TimerStore,
        leases: LeaseStore,
        destination: Destination,
        clock: Clock,
        options: EngineOptions,
        cluster: Cluster | None = None,
        namespaces: NamespaceView | None = None,
    ) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._options = options
        self._held = HeldLeases(clock)
        self._due_reader = DueReader(
            store,
            self._held,
            clock,
            horizon_ms=options.horizon_ms,
            poll_seconds=options.poll_seconds,
            batch_size=options.batch_size,
        )
        self._settler = Settler(store, self, clock)
        slots = Slots(options.concurrency, options.concurrency_per_endpoint)
        quotas = Quotas(
            NoNamespaces() if namespaces is None else namespaces, lambda: self.members or 1
        )
        self._dispatcher = Dispatcher(
            destination,
            self._settler,
            self._held,
            clock,
            slots,
            quotas,
            horizon_ms=options.horizon_ms,
        )
        self._due_reader.feed(self._dispatcher)
        self._pruner = Pruner(
            store, clock, options.retention_seconds, lambda: self.clock_watch.is_skewed
        )
        self.clock_watch = ClockWatch(options.clock_skew_limit_ms)
        self._cluster = None if cluster is None else self._in_cluster(cluster)
        self._takes_shards = False
        self._taking_shards = asyncio.Lock()

    async def start(self) -> None:
        """Own shards, then work on them. Raises `StoreUnavailable`; then nothing was started."""
        if self._cluster is None:
            async with self._taking_shards:
                owner = self._options.owner
                self._held.take(await take_all_shards(self._store, self._leases, owner))
                self._takes_shards = True
        else:
            await self._cluster.start(self)
        self._settler.start()
        self._due_reader.start()
        self._pruner.start()

    async def stop(self, grace_seconds: float) -> None:
        """Claim nothing more, finish what is under way within the grace, hand back the rest,
        release each shard as soon as nothing of it is under way."""
        stopping_since_seconds = self._clock.monotonic()
        self._takes_shards = False
        await self._due_reader.stop()
        if self._cluster is not None:
            self._cluster.owner.leave_all()
        await self._pruner.abandon()
        await self._dispatcher.stop(grace_seconds)
        grace_left_seconds = grace_seconds - (self._clock.monotonic() - stopping_since_seconds)
        try:
            await self._settler.stop(max(grace_left_seconds, SHORTEST_SETTLING_GRACE_SECONDS))
            await self._release()
        except StoreUnavailable as error:
            # What could not be settled is still executing in the store: it is recovered.
            _log.error("engine.stopped_without_store", error=error.message)
        except Exception:
            _log.exception("engine.stopped_with_unsettled")
        finally:
            if self._cluster is not None:
                await self._cluster.stop()

    async def own_new_shards(self) -> None:
        """A namespace was added: on return its shards are owned, or are about to be by who of
        the members gets them. Raises `StoreUnavailable`; a timer in a shard without an owner is
        safe, and waits for one."""
        if self._cluster is not None:
            self._cluster.owner.beat_soon()
            self._cluster.announcer.announce_shards_changed()
            return
        async with self._taking_shards:
            if self._takes_shards:
                self._held.take(
                    await take_other_shards(
                        self._store, self._leases, self._options.owner, held=self._held.all
                    )
                )
                self._due_reader.poll_now()

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        if self._cluster is None:
            self._due_reader.announce(shard, due_at)
        else:
            self._cluster.announcer.announce(shard, due_at)

    def due_announced(self, due: Mapping[ShardNumber, Instant]) -> None:
        for shard in due.keys() & self._held.claimable.keys():
            self._due_reader.announce(shard, due[shard])

    def shards_changed(self) -> None:
        if self._cluster is not None:
            self._cluster.owner.beat_soon()

    def signals_missed(self) -> None:
        self._due_reader.poll_now()
        self.shards_changed()

    @property
    def is_running(self) -> bool:
        """It works on its shards, or would if it had any."""
        return (
            self._due_reader.is_working
            and self._settler.is_working
            and self._held.are_valid
            and (self._cluster is None or self._cluster.owner.is_working)
        )

    @property
    def shards_owned(self) -> int:
        return len(self._held)

    @property
    def node(self) -> str:
        """The name of this process among the members."""
        return self._options.owner if self._cluster is None else self._cluster.owner.node

    @property
    def members(self) -> int | None:
        """How many nodes share the store; None when it serves one process."""
        return None if self._cluster is None else len(self._cluster.owner.view.members)

    @property
    def shards(self) -> int:
        """How many shards there are in all."""
        return len(self._held if self._cluster is None else self._cluster.owner.view.shards)

    @property
    def in_flight(self) -> int:
        return self._dispatcher.in_flight

    @property
    def open_endpoints(self) -> int:
        """How many endpoints keep failing or hanging, as far as this node has seen."""
        return self._dispatcher.open_endpoints

    def endpoints(self) -> list[EndpointStatus]:
        """The endpoints that this node calls, or that failed here lately; the open ones first."""
        return self._dispatcher.endpoints()

    def lateness_ms(self, percent: float) -> float | None:
        return self._dispatcher.lateness.percentile_ms(percent, self._clock.monotonic())

    def _facts(self) -> NodeFacts:
        return replace(
            self._options.facts,
            in_flight=self.in_flight,
            lateness_ms=self.lateness_ms(99),
            clock_offset_ms=self.clock_watch.offset_ms,
        )

    async def _release(self) -> None:
        if self._cluster is not None:
            await self._cluster.owner.end()
        else:
            async with self._taking_shards:
                await self._leases.release_shards(self._held.all)
                self._held.drop(self._held.all)

    def _in_cluster(self, cluster: Cluster) -> "_InCluster":
        announcer = Announcer(
            self._due_reader,
            self._held,
            cluster.signals,
            self._clock,
            poll_seconds=self._options.poll_seconds,
        )
        owner = ShardOwner(
            self._store,
            self._leases,
            cluster,
            announcer.announce_shards_changed,
            self._clock,
            self._held,
            ShardHandover(self._held, self._due_reader, self._dispatcher, self._settler),
            self._facts,
            self.clock_watch,
            node=self._options.owner,
            lease_seconds=self._options.lease_seconds,
        )
        return _InCluster(cluster.signals, owner, announcer)


class _InCluster:
    """The parts that only an engine with others beside it has."""

    def __init__(self, signals: NodeSignals, owner: ShardOwner, announcer: Announcer) -> None:
        self._signals = signals
        self.owner = owner
        self.announcer = announcer

    async def start(self, engine: Engine) -> None:
        await self._signals.start(engine)
        try:
            await self.owner.begin()
        except BaseException:
            await self._signals.stop()
            raise
        self.owner.start()
        self.announcer.start()

    async def stop(self) -> None:
        await self.owner.stop()
        await self.announcer.stop()
        await self._signals.stop()
