"""The metrics of the API and of this process, as its parts and the system tell them."""

import os
import platform
import resource
from pathlib import Path

from duetime import __version__
from duetime.ports.clock import Clock
from duetime.reports.loop_lag import LoopLag
from duetime.server.door import Door
from duetime.service.security.audit_log import AuditLog
from duetime.settings import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
)
from duetime.telemetry.metrics.catalogue import process
from duetime.telemetry.metrics.recording import Gauge, Recorder, one
from duetime.telemetry.metrics.requests import RequestMetrics

STORE_KINDS = {
    SqliteStoreSettings: "sqlite",
    MemoryStoreSettings: "memory",
    PostgresStoreSettings: "postgres",
}

_MEMORY = Path("/proc/self/statm")
_DESCRIPTORS = Path("/proc/self/fd")


def process_recorders(
    settings: Settings,
    clock: Clock,
    requests: RequestMetrics,
    door: Door,
    audit_log: AuditLog,
    loop_lag: LoopLag,
) -> list[Recorder]:
    build = (__version__, platform.python_version(), STORE_KINDS[type(settings.store)])
    started_seconds = clock.now() / 1_000_000
    return [
        *requests.recorders(),
        one(process.CONNECTIONS, lambda: door.connections),
        one(process.CONNECTIONS_TURNED_AWAY, lambda: door.turned_away),
        one(process.CONNECTIONS_CLOSED, lambda: door.closed),
        one(process.AUDIT_WAITING, lambda: audit_log.waiting),
        one(process.AUDIT_DROPPED, lambda: audit_log.dropped),
        loop_lag.histogram,
        Gauge(process.BUILD, lambda: [(build, 1)]),
        one(process.CPU, _cpu_seconds),
        one(process.RESIDENT, _resident_bytes),
        one(process.OPEN_FILES, _open_files),
        one(process.MAX_FILES, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        one(process.STARTED, lambda: started_seconds),
    ]


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident_bytes() -> float:
    return int(_MEMORY.read_text().split()[1]) * resource.getpagesize()


def _open_files() -> float:
    # Linux tells the number as the size since 6.2; before that, it has to be counted.
    return _DESCRIPTORS.stat().st_size or len(os.listdir(_DESCRIPTORS))
