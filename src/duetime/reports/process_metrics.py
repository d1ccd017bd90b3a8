"""The metrics of the API and of this process, as its parts and the system tell them."""

import errno
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
        one(process.MAX_FILES, _max_files),
        one(process.STARTED, lambda: started_seconds),
    ]


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident_bytes() -> float:
    return int(_MEMORY.read_text().split()[1]) * resource.getpagesize()


def _open_files() -> float:
    if size := _size_of_descriptors():
        return size
    try:
        return len(os.listdir(_DESCRIPTORS))
    except OSError as error:
        if error.errno == errno.EMFILE:
            # Counting takes a descriptor, and none is left.
            return _max_files()
        raise


def _size_of_descriptors() -> int:
    """The number, as Linux tells it since 6.2; before that, 0."""
    return _DESCRIPTORS.stat().st_size


def _max_files() -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
