"""The engine: its parts, started and stopped in order."""

from collections.abc import Collection, Mapping, Sequence

import structlog
from msgspec.structs import replace

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.lateness.recent_slots import SlotFigures
from duetime.domain.timer import Timer
from duetime.domain.transitions import claim_of, claimed
from duetime.engine.announcer import Announcer
from duetime.engine.claim_progress import ClaimProgress
from duetime.engine.clocks.clock_watch import ClockWatch
from duetime.engine.clocks.replanner import Replanner
from duetime.engine.cluster.handover import ShardHandover
from duetime.engine.cluster.members import Cluster, ClusterState, owner_of
from duetime.engine.cluster.ownership import SharedOwner, SoleOwner
from duetime.engine.cluster.shard_owner import ShardOwner
from duetime.engine.deliveries import Deliveries
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.due_reader import DueReader
from duetime.engine.held_leases import Handovers, HeldLeases
from duetime.engine.lanes.lanes import Lanes
from duetime.engine.lanes.quota import Quotas
from duetime.engine.lanes.resumer import Resumer
from duetime.engine.lanes.slots import Slots
from duetime.engine.meters import EngineMeters
from duetime.engine.options import EngineOptions
from duetime.engine.pruning.audit_pruner import AuditPruner
from duetime.engine.pruning.pruner import Pruner
from duetime.engine.settler import Settler
from duetime.engine.straggler_finder import StragglerFinder
from duetime.engine.wait_log import WaitLog
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.endpoints import (
    EndpointPause,
    EndpointStatus,
    FiringReport,
    HeldTimers,
    idle_endpoint,
)
from duetime.ports.leases import LeaseStore
from duetime.ports.membership import MOST_TOLD_PAUSES, ClusterView, LostMember, NodeFacts
from duetime.ports.namespaces.view import NamespaceView, NoNamespaces
from duetime.ports.security import SecurityStore
from duetime.ports.store import Leases, TimerStore
from duetime.ports.wakeups import WakeUps

_log = structlog.get_logger()

SHORTEST_SETTLING_GRACE_SECONDS = 1.0
"""Time to record outcomes even when the attempts took all of the grace. Unrecorded attempts are
repeated after the next start, so a store that is away for a moment gets a second chance."""

MOST_TOLD_GROUPS = 8
"""Groups of timers behind open breakers that other members are told about: each of their beats is
written to the store."""


class Engine:
    """Implements the ports of wake-ups and of owned shards for this process, and receives the
    signals of other nodes. An engine without a cluster is the only one on its store."""

    def __init__(
        self,
        store: TimerStore,
        leases: LeaseStore,
        destination: Destination,
        clock: Clock,
        options: EngineOptions,
        cluster: Cluster | None = None,
        namespaces: NamespaceView | None = None,
        audit: SecurityStore | None = None,
        meters: EngineMeters | None = None,
    ) -> None:
        self.meters = meters = meters or EngineMeters()
        self._clock = clock
        self._is_clustered = cluster is not None
        self._held = held = HeldLeases(clock)
        self._local = local = LocalWakeUps()
        announcer = (
            None if cluster is None else Announcer(local, held, cluster.signals, clock, options)
        )
        self._wakeups: WakeUps = announcer or local
        self._state = state = ClusterState(options.owner)
        self._own_facts = options.facts
        self._url = options.facts.url or None
        self.clock_watch = ClockWatch(options.clock_skew_limit_ms)
        self._settler = Settler(store, self._wakeups, local, clock, meters)
        self._wait_log = wait_log = WaitLog()
        self._deliveries = Deliveries(
            destination, self._settler, held, clock, local, meters, wait_log
        )
        self._slots = slots = Slots(options.concurrency, options.concurrency_per_endpoint)
        known = NoNamespaces() if namespaces is None else namespaces
        quotas = Quotas(known, lambda: len(state.view.members) or 1)
        self._quotas = quotas
        self._lanes = Lanes(
            slots, quotas, self._settler, clock, local, self._deliveries.start, wait_log
        )
        self._resumer = Resumer(store, self._lanes.paused, self._wakeups, clock)
        self._dispatcher = Dispatcher(
            destination, self._deliveries, self._lanes, self._settler, slots, clock, local, options
        )
        progress = ClaimProgress()
        self._due_reader = DueReader(
            store,
            held,
            self._dispatcher,
            self._deliveries,
            local,
            progress,
            clock,
            options,
            meters,
            wait_log,
        )
        self._finder = StragglerFinder(store, held, progress, local, clock, options)
        self._replanner = Replanner(store, held, self._wakeups, clock, self.clock_watch)
        self._pruner = Pruner(store, clock, options.retention_seconds, self.clock_watch)
        self._audit_pruner: AuditPruner | None = None
        if audit is not None and options.audit_retention_seconds is not None:
            seconds = options.audit_retention_seconds
            self._audit_pruner = AuditPruner(store, audit, clock, seconds)
        handover = ShardHandover(held, self._due_reader, self._dispatcher, self._settler)
        self._ownership: SoleOwner | SharedOwner = SoleOwner(
            store, leases, held, handover, wait_log, clock, node=options.owner
        )
        if cluster is not None and announcer is not None:
            facts = self.facts
            owner = ShardOwner(
                store,
                leases,
                cluster,
                state,
                announcer,
                clock,
                held,
                handover,
                facts,
                self.clock_watch,
                options,
                wait_log,
            )
            self._ownership = SharedOwner(cluster.signals, owner, announcer)

    async def start(self) -> None:
        """Own shards, then work on them. Raises `StoreUnavailable`; then nothing was started."""
        await self._ownership.begin(self)
        self._settler.start()
        self._due_reader.start()
        self._finder.start()
        self._replanner.start()
        self._resumer.start()
        self._pruner.start()
        if self._audit_pruner is not None:
            self._audit_pruner.start()

    async def stop(self, grace_seconds: float) -> None:
        """Claim nothing more, finish attempts within the grace, hand back the other claims, and
        release each shard as soon as none of its attempts is under way."""
        stopping_since_seconds = self._clock.monotonic()
        await self._due_reader.stop()
        self._ownership.leave_all()
        await self._finder.abandon()
        await self._replanner.abandon()
        await self._resumer.abandon()
        await self._pruner.abandon()
        if self._audit_pruner is not None:
            await self._audit_pruner.abandon()
        await self._dispatcher.stop(grace_seconds)
        grace_left_seconds = grace_seconds - (self._clock.monotonic() - stopping_since_seconds)
        try:
            await self._settler.stop(max(grace_left_seconds, SHORTEST_SETTLING_GRACE_SECONDS))
            await self._ownership.end()
        except StoreUnavailable as error:
            # Unsettled timers are still executing in the store, and will be recovered.
            _log.error("engine.stopped_without_store", error=error.message)
        except Exception:
            _log.exception("engine.stopped_with_unsettled")
        finally:
            await self._ownership.close()

    async def own_new_shards(self) -> None:
        """A namespace was added: on return its shards are owned, or the members are about to take
        them. Raises `StoreUnavailable`; a timer in a shard without an owner is safe, and waits
        for one."""
        await self._ownership.take_new_shards()

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        self._wakeups.announce(shard, due_at)

    def due_announced(self, due: Mapping[ShardNumber, Instant]) -> None:
        for shard in due.keys() & self._held.claimable.keys():
            self._local.announce(shard, due[shard])

    def shards_changed(self) -> None:
        self._ownership.shards_changed()

    def signals_missed(self) -> None:
        self._due_reader.poll_now()
        self.shards_changed()

    @property
    def is_running(self) -> bool:
        """The engine works on its shards, or would if it had any."""
        return (
            self._due_reader.is_working
            and self._settler.is_working
            and self._held.are_valid
            and self._ownership.is_working
        )

    def owned_shards(self) -> Collection[ShardNumber]:
        return self._held.claimable.keys() if self._held.are_valid else ()

    @property
    def shards_owned(self) -> int:
        return len(self._held)

    @property
    def node(self) -> str:
        """The name of this process among the members."""
        return self._state.node

    @property
    def members(self) -> int | None:
        """The number of nodes that share the store; None when it serves one process."""
        return len(self._state.view.members) if self._is_clustered else None

    @property
    def view(self) -> ClusterView:
        """The members and shards as this node last saw them; empty without a cluster."""
        return self._state.view

    @property
    def lost_members(self) -> Sequence[LostMember]:
        """The last members that this node believed dead."""
        return self._state.lost

    @property
    def shards(self) -> int:
        """The number of shards in the store."""
        return len(self._state.view.shards) if self._is_clustered else len(self._held)

    @property
    def handovers(self) -> Handovers:
        return self._held.handovers

    @property
    def leases(self) -> Leases:
        """The shards that this process holds."""
        return self._held.all

    @property
    def highest_epoch(self) -> int:
        """The highest epoch of the shards that are owned; 0 without any."""
        return max(self._held.all.values(), default=0)

    @property
    def slots(self) -> int:
        """The number of attempts that may be under way at once."""
        return self._slots.total

    @property
    def in_flight(self) -> int:
        return self._dispatcher.in_flight

    @property
    def local_shortages(self) -> int:
        """Attempts that could not be made because this process lacked a resource, since the start.
        They do not count as attempts."""
        return self._deliveries.shortages.count

    @property
    def unwritten(self) -> int:
        """The number of outcomes that the store has not written yet."""
        return self._settler.unwritten + self._settler.set_apart

    @property
    def waiting(self) -> int:
        """The number of claims that are due and wait for a slot or for their endpoint."""
        return self._lanes.waiting

    def endpoints(self) -> list[EndpointStatus]:
        """The endpoints that this node calls, that are paused, or that failed here lately; the
        paused ones first, then the open ones."""
        return self._lanes.statuses()

    def troubled_endpoints(self, most: int) -> list[EndpointStatus]:
        """Up to `most` endpoints that are paused, open or failing here: in this order. Quick, even
        with very many endpoints."""
        return self._lanes.troubled(most)

    def endpoint_names(self) -> Sequence[str]:
        """The names of the same endpoints, and of those that were called in the last minutes."""
        self.meters.record_gathered()
        lately = self.meters.endpoint_counts.endpoints(self._clock.now())
        return list(dict.fromkeys([*self._lanes.names(), *lately]))

    def status_of(self, endpoint: str) -> EndpointStatus:
        """The endpoint with its figures, as of the last call of `endpoint_names`."""
        status = self._lanes.status_of(endpoint) or idle_endpoint(endpoint)
        figures = self.meters.endpoint_counts.figures_of(endpoint, self._clock.now())
        return replace(status, figures=figures)

    @property
    def paused_endpoints(self) -> int:
        return len(self._lanes.paused)

    def set_pauses(self, pauses: Mapping[str, EndpointPause]) -> None:
        """Begin no attempt at these endpoints, and do so again at those that are not among them
        any more. Attempts under way finish."""
        self._lanes.set_pauses(pauses)
        self._resumer.wake()

    def report_on(self, timer: Timer, now: Instant) -> FiringReport:
        """The report on a timer, which may be of a shard of another node."""
        state, view = self._state, self._state.view
        owns = timer.shard in self._held.claimable and self._held.are_valid
        owner, owner_url = (state.node, None) if owns else owner_of(timer.shard, view)
        report = FiringReport(
            node=state.node,
            owns_shard=owns,
            node_url=self._url,
            is_running=self.is_running,
            owner=owner,
            owner_url=owner_url,
            clock_ahead_ms=self.clock_watch.ahead_ms,
        )
        if not owns or timer.status.is_finished:
            return report
        return self._with_live_facts(report, timer, now)

    def _with_live_facts(self, report: FiringReport, timer: Timer, now: Instant) -> FiringReport:
        if timer.claimed_at is None:
            claim = claim_of(claimed(timer, epoch=timer.epoch, now=now))
        else:
            claim = claim_of(timer)
        endpoint = self._dispatcher.endpoint_of(claim)
        sent_at, waits = self._deliveries.sent(claim) or (None, ())
        cause = self._lanes.waits_for(endpoint, claim)
        if sent_at is None:
            waits = self._wait_log.waits_so_far(claim, now, cause)
        quota = self._quotas.of(claim.namespace)
        return replace(
            report,
            waits=waits,
            waits_for=cause or self._wait_log.waits_for(claim, now),
            sent_at=sent_at,
            endpoint=self._lanes.status_of(endpoint),
            quota_in_flight=quota.in_flight,
            quota_limit=quota.limit,
        )

    def lateness_ms(self, percent: float) -> float | None:
        return self._deliveries.lateness_ms(percent)

    def last_slots(self) -> tuple[SlotFigures, ...]:
        """The figures of this process in the last slots that are over."""
        return self.meters.last_slots(self._clock.now())

    def held(self) -> list[HeldTimers]:
        """The timers that this process knows to wait behind open breakers, the largest groups
        first."""
        return self._lanes.held()

    def facts(self) -> NodeFacts:
        """The description of this process that other members get."""
        return replace(
            self._own_facts,
            in_flight=self.in_flight,
            lateness_ms=self.lateness_ms(99),
            clock_offset_ms=self.clock_watch.offset_ms,
            lets_finish=True,
            slots=self.last_slots(),
            held=tuple(self.held()[:MOST_TOLD_GROUPS]),
            put_off=self._lanes.paused.largest(MOST_TOLD_PAUSES, self._clock.monotonic()),
            lost=tuple(self._state.lost),
        )
