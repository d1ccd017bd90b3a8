"""The reports of a process, put together, with the loops that gather them."""

from functools import partial
from typing import TYPE_CHECKING, Protocol

from duetime.bus.bus_router import BusRouter
from duetime.engine import Engine
from duetime.ports.clock import Clock
from duetime.ports.endpoints import NodeEndpoints
from duetime.ports.inspection import OutlookStore
from duetime.ports.membership import BEAT_SHARE
from duetime.ports.store import TimerStore
from duetime.reports.cluster import report_on_cluster, slots_of_members
from duetime.reports.problem_sources import ProblemSources
from duetime.service.reporting.bus_report import BusReport
from duetime.service.reporting.census import Census
from duetime.service.reporting.due_outlook import DueOutlook
from duetime.service.reporting.objectives import Objectives
from duetime.service.reporting.problems import ProblemWatch
from duetime.service.reporting.recent_figures import RecentFigures
from duetime.service.reporting.reports import NatsReport, Reports, TimerCounts
from duetime.settings import Settings

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection


class _Store(TimerStore, OutlookStore, Protocol): ...


class Reporting:
    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        store: _Store,
        clock: Clock,
        census: Census,
        objectives: Objectives,
        router: BusRouter | None,
        nats: "NatsConnection | None",
    ) -> None:
        sources = ProblemSources(
            engine,
            store,
            clock,
            census,
            objectives,
            router,
            nats,
            clock_skew_limit_ms=settings.clock_skew_limit_ms,
            beat_seconds=settings.lease_seconds * BEAT_SHARE,
        )
        self.reports = Reports(
            counts=TimerCounts(store, clock),
            census=census,
            outlook=DueOutlook(store, clock),
            recent=RecentFigures(clock, partial(slots_of_members, engine)),
            problems=ProblemWatch(clock, sources.all()),
            troubled=lambda most: NodeEndpoints(engine.node, engine.troubled_endpoints(most)),
            cluster=partial(report_on_cluster, engine),
            bus=partial(_report_on_bus, router, engine),
            nats=partial(_report_on_nats, nats),
        )
        self._loops = (sources.ping, self.reports.recent, self.reports.problems)

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    async def abandon(self) -> None:
        for loop in self._loops:
            await loop.abandon()


def _report_on_bus(router: BusRouter | None, engine: Engine) -> BusReport | None:
    return None if router is None else router.report(engine.node)


def _report_on_nats(nats: "NatsConnection | None") -> NatsReport | None:
    return None if nats is None else NatsReport(nats.display_name, nats.is_connected)
