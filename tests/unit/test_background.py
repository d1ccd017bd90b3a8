"""A background loop while the store is away: its log, and its pauses."""

from itertools import pairwise

import pytest
import structlog
from structlog.testing import capture_logs

from duetime.background import REMIND_SECONDS, BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.testing import LoopClock, on_virtual_time


class Flaky(BackgroundLoop):
    name = "flaky"
    away = True

    async def step(self) -> None:
        if self.away:
            raise StoreUnavailable("away")
        await self.wait(1)


class Patient(BackgroundLoop):
    """Never succeeds, and records the instants of its tries."""

    name = "patient"
    first_pause_seconds = 2.0
    longest_pause_seconds = 6.0

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(clock)
        self.tried_at_seconds: list[float] = []

    async def step(self) -> None:
        self.tried_at_seconds.append(self._clock.monotonic())
        raise StoreUnavailable("away")


class Slow(BackgroundLoop):
    """Counts its steps of ten seconds."""

    name = "slow"
    steps = 0

    async def step(self) -> None:
        assert isinstance(self._clock, LoopClock)
        await self._clock.sleep(10)
        self.steps += 1


@pytest.mark.parametrize(
    ("within_seconds", "steps", "took_seconds"), [(60, 1, 6), (2, 0, 2), (0, 0, 0)]
)
def test_the_step_under_way_has_some_time_to_finish(
    within_seconds: float, steps: int, took_seconds: float
) -> None:
    @on_virtual_time
    async def scenario() -> tuple[int, float]:
        clock = LoopClock()
        loop = Slow(clock)
        loop.start()
        await clock.sleep(4)
        told_seconds = clock.monotonic()
        await loop.stop_within(within_seconds)
        return loop.steps, clock.monotonic() - told_seconds

    assert scenario() == (steps, took_seconds)


def test_a_loop_may_set_its_own_pauses() -> None:
    @on_virtual_time
    async def scenario() -> list[float]:
        clock = LoopClock()
        loop = Patient(clock)
        loop.start()
        await clock.sleep(20)
        await loop.stop()
        return loop.tried_at_seconds

    with capture_logs():
        tries = scenario()
    assert [round(later - earlier) for earlier, later in pairwise(tries)] == [2, 4, 6, 6]


def test_an_absence_is_logged_once_and_again_at_intervals() -> None:
    @on_virtual_time
    async def scenario() -> None:
        clock = LoopClock()
        loop = Flaky(clock)
        loop.start()
        await clock.sleep(3 * REMIND_SECONDS - 1)
        loop.away = False
        await clock.sleep(10)
        loop.away = True
        await clock.sleep(5)
        loop.away = False
        await clock.sleep(5)
        await loop.stop()

    structlog.reset_defaults()
    with capture_logs() as logs:
        scenario()
    events = [entry["event"] for entry in logs]
    away, back = "store.unavailable", "store.available"
    assert events == [away, away, away, back, away, back]
    assert logs[3]["away_seconds"] >= 3 * REMIND_SECONDS - 2
