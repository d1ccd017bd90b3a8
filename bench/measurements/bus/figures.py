"""All that one run finds out about the bus."""

import msgspec

from bench.measurements.bus.commands import CommandsFigures
from bench.measurements.bus.firing import EventsBurstFigures, EventsSteadyFigures


class BusFigures(msgspec.Struct, kw_only=True):
    commands: CommandsFigures | None = None
    burst: EventsBurstFigures | None = None
    steady: EventsSteadyFigures | None = None

    @property
    def is_empty(self) -> bool:
        return not any(msgspec.structs.astuple(self))

    @property
    def faults(self) -> list[str]:
        figures = (self.commands, self.burst, self.steady)
        return [fault for each in figures if each for fault in each.faults]
