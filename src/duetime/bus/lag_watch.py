"""Asks the broker from time to time how many commands wait there."""

from duetime.background import BackgroundLoop
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Bus
from duetime.ports.clock import Clock

ASK_SECONDS = 5.0
"""Time between two questions."""


class LagWatch(BackgroundLoop):
    """Knows the last answer. Other parts report a broker that is away."""

    name = "bus-lag"

    def __init__(self, bus: Bus, clock: Clock) -> None:
        super().__init__(clock)
        self._bus = bus
        self.commands: int | None = None
        """The commands that wait; None while that is unknown."""

    async def step(self) -> None:
        try:
            self.commands = await self._bus.count_waiting()
        except BusUnavailable:
            self.commands = None
        await self.wait(ASK_SECONDS)
