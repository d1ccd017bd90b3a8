"""The tools that Duetime is tested with, shipped so that you can test with them too.

The contract suites need pytest and pytest-asyncio and are imported from their own modules.
"""

from duetime.testing.engine_options import engine_options
from duetime.testing.manual_engine import ManualEngine
from duetime.testing.recording_destination import (
    Fail,
    Hang,
    RecordingDestination,
    Reschedule,
    RunOut,
    Succeed,
)
from duetime.testing.timers import make_timer
from duetime.testing.virtual_clock import VirtualClock
from duetime.testing.virtual_loop import (
    Deadlock,
    LoopClock,
    VirtualTimeLoop,
    on_virtual_time,
    run_on_virtual_time,
)

__all__ = [
    "Deadlock",
    "Fail",
    "Hang",
    "LoopClock",
    "ManualEngine",
    "RecordingDestination",
    "Reschedule",
    "RunOut",
    "Succeed",
    "VirtualClock",
    "VirtualTimeLoop",
    "engine_options",
    "make_timer",
    "on_virtual_time",
    "run_on_virtual_time",
]
