"""The lag of the event loop."""

from duetime.reports.loop_lag import LoopLag
from duetime.testing import VirtualClock


class LateClock(VirtualClock):
    """Sleeps longer than it was asked to."""

    late_seconds = 0.0

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds + self.late_seconds)


async def test_a_delay_is_observed_as_long_as_it_was() -> None:
    clock = LateClock()
    lag = LoopLag(clock)
    for clock.late_seconds in (0.0, 0.003, 60.0, 0.0):
        await lag.step()
    ((_, series),) = lag.histogram.series()
    assert sum(series.counts) == 4
    assert round(series.total, 6) == 60.003
    assert series.counts[-1] == 1
