"""The reports that pages show, each from memory or shared by all who ask."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from duetime.domain.timer import TimerStatus
from duetime.ports.clock import Clock
from duetime.ports.endpoints import NodeEndpoints
from duetime.ports.store import TimerStore
from duetime.service.reporting.bus_report import BusReport
from duetime.service.reporting.census import Census
from duetime.service.reporting.cluster_report import ClusterReport
from duetime.service.reporting.due_outlook import DueOutlook
from duetime.service.reporting.problems import ProblemWatch
from duetime.service.reporting.recent_figures import RecentFigures
from duetime.service.reporting.shared_readings import SharedReadings

MOST_NAMESPACES = 100
"""Namespaces whose timers are counted for one caller."""


class NatsReport(Struct, frozen=True):
    server: str
    is_connected: bool


class StatusCounts(Struct, frozen=True):
    """The timers of some namespaces, or of all, by status. `leaves_out` counts the namespaces that
    were not looked at. Large numbers may be estimates of the store."""

    timers: Mapping[TimerStatus, int]
    leaves_out: int = 0

    @property
    def total(self) -> int | None:
        """All of them; None if some were not looked at."""
        return None if self.leaves_out else sum(self.timers.values())


class TimerCounts:
    """Counts timers by status when somebody looks, once for all who look."""

    def __init__(self, store: TimerStore, clock: Clock) -> None:
        self._store = store
        self._readings = SharedReadings[frozenset[str] | None, StatusCounts](clock, self._count)

    async def of(
        self, namespaces: frozenset[str] | None, *, patience_seconds: float
    ) -> StatusCounts | None:
        """None while they are being counted for the first time."""
        reading = await self._readings.get(namespaces, patience_seconds=patience_seconds)
        return None if reading is None else reading.value

    async def _count(self, namespaces: frozenset[str] | None) -> StatusCounts:
        if namespaces is None:
            return StatusCounts(await self._store.counts())
        timers = dict.fromkeys(TimerStatus, 0)
        names = sorted(namespaces)[:MOST_NAMESPACES]
        for name in names:
            for status, count in (await self._store.counts(name)).items():
                timers[status] += count
        return StatusCounts(timers, len(namespaces) - len(names))


class Reports(Struct, frozen=True, kw_only=True):
    """Everything that a process can tell about itself and about the other members."""

    counts: TimerCounts
    census: Census
    outlook: DueOutlook
    recent: RecentFigures
    problems: ProblemWatch
    troubled: Callable[[int], NodeEndpoints]
    """Up to so many endpoints that are paused, open or failing, as this process sees them."""
    cluster: Callable[[], ClusterReport]
    bus: Callable[[], BusReport | None]
    nats: Callable[[], NatsReport | None]
