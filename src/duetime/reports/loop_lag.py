"""The lag of the event loop, measured twice a second."""

from duetime.background import BackgroundLoop
from duetime.ports.clock import Clock
from duetime.telemetry.metrics.catalogue.process import LOOP_LAG
from duetime.telemetry.metrics.recording import Histogram

INTERVAL_SECONDS = 0.5


class LoopLag(BackgroundLoop):
    """Sets a timer and observes how late it fires. A pause of the process, or a step of the loop
    that takes long, is one value that is as large as the pause; no timer makes up for it."""

    name = "loop-lag"

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.histogram = Histogram(LOOP_LAG)
        self._series = self.histogram.of()

    async def step(self) -> None:
        due_seconds = self._clock.monotonic() + INTERVAL_SECONDS
        await self._clock.sleep(INTERVAL_SECONDS)
        self._series.observe(max(0.0, self._clock.monotonic() - due_seconds))
