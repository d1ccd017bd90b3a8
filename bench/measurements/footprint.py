"""Start-up time, memory and CPU of an idle server, and of its database server if there is one."""

import time

import msgspec

from bench.harness.server import Server
from bench.scale import Scale
from bench.stores.postgres_server import PostgresHost

SETTLE_SECONDS = 1.0


class FootprintFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The database's figures are None where it has no processes on this machine."""

    pending: int
    start_seconds: float
    memory_mb: float
    idle_cpu_percent: float
    database_memory_mb: float | None
    database_idle_cpu_percent: float | None


def measure_footprint(server: Server, scale: Scale, host: PostgresHost | None) -> FootprintFigures:
    """Call this right after the start, before any request."""
    time.sleep(SETTLE_SECONDS)
    before, database_before = server.cpu_seconds(), database_cpu_seconds(host)
    started = time.perf_counter()
    time.sleep(scale.idle_seconds)
    seconds = time.perf_counter() - started
    cpu, database_cpu = server.cpu_seconds() - before, database_cpu_seconds(host)
    return FootprintFigures(
        pending=scale.stored,
        start_seconds=round(server.start_seconds, 3),
        memory_mb=round(server.memory_mb(), 1),
        idle_cpu_percent=round(100 * cpu / seconds, 2),
        database_memory_mb=host.memory_mb() if host else None,
        database_idle_cpu_percent=(
            None
            if database_cpu is None or database_before is None
            else round(100 * (database_cpu - database_before) / seconds, 2)
        ),
    )


def database_cpu_seconds(host: PostgresHost | None) -> float | None:
    return host.cpu_seconds() if host else None
