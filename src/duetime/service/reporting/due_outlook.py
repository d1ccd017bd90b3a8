"""The outlook: how many timers fall due in the next hour, day or week."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.ports.clock import Clock
from duetime.ports.inspection import DueCount, OutlookStore
from duetime.service.reporting.shared_readings import SharedReadings

MOST_COUNTED = 10_000
"""Timers of a bar that are counted at most."""

FEWER_COUNTED = 1_000
"""Timers of a bar that are counted if counting more took too long."""

PATIENCE_SECONDS = 0.06
"""Time that a page waits for the counts. Then it shows the last ones, or none."""

MOST_NAMESPACES = 100
"""Namespaces that are counted together, of a key that sees more but not all."""


class Horizon(Enum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def bars(self) -> int:
        return {"hour": 60, "day": 48, "week": 84}[self.value]

    @property
    def bar_seconds(self) -> int:
        return {"hour": 60, "day": 1_800, "week": 7_200}[self.value]


class Outlook(Struct, frozen=True):
    """`bars` begin at `from_at`, one after the other. `leaves_out` counts the namespaces that were
    not looked at."""

    horizon: Horizon
    from_at: Instant
    bars: Sequence[DueCount]
    leaves_out: int = 0


_Asked = tuple[Horizon, frozenset[str] | None]


class DueOutlook:
    """Counts when somebody looks, at most every few seconds, once for all who look."""

    def __init__(self, store: OutlookStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._readings = SharedReadings[_Asked, Outlook](clock, self._count)

    async def of(
        self,
        horizon: Horizon,
        namespaces: frozenset[str] | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Outlook | None:
        """The outlook of some namespaces, or of all for None. None while it is being counted, and
        if the store takes too long."""
        asked = horizon, namespaces
        reading = await self._readings.get(asked, patience_seconds=patience_seconds)
        return None if reading is None else reading.value

    async def _count(self, asked: _Asked) -> Outlook | None:
        horizon, namespaces = asked
        names = None if namespaces is None else sorted(namespaces)[:MOST_NAMESPACES]
        now = self._clock.now()
        first = now - now % MICROSECONDS_PER_SECOND + MICROSECONDS_PER_SECOND
        step = horizon.bar_seconds * MICROSECONDS_PER_SECOND
        bounds = [Instant(first + number * step) for number in range(horizon.bars + 1)]
        for most in (MOST_COUNTED, FEWER_COUNTED):
            bars = await self._store.count_due(bounds, most=most, namespaces=names)
            if bars is not None:
                left_out = (
                    0 if namespaces is None or names is None else len(namespaces) - len(names)
                )
                return Outlook(horizon, bounds[0], bars, left_out)
        return None
