"""The log of a background loop while the store is away."""

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
