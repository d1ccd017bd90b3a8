"""What the server takes of the machine while it only waits."""

import time

import msgspec

from bench.scale import Scale
from bench.server import Server

SETTLE_SECONDS = 1.0


class FootprintFigures(msgspec.Struct, frozen=True, kw_only=True):
    pending: int
    start_seconds: float
    memory_mb: float
    idle_cpu_percent: float


def measure_footprint(server: Server, scale: Scale) -> FootprintFigures:
    """To be called first thing after the start, when no request has warmed anything yet."""
    time.sleep(SETTLE_SECONDS)
    cpu_before, started = server.cpu_seconds(), time.perf_counter()
    time.sleep(scale.idle_seconds)
    cpu_seconds = server.cpu_seconds() - cpu_before
    return FootprintFigures(
        pending=scale.stored,
        start_seconds=round(server.start_seconds, 3),
        memory_mb=round(server.memory_mb(), 1),
        idle_cpu_percent=round(100 * cpu_seconds / (time.perf_counter() - started), 2),
    )
