"""Memory and CPU time of processes."""

import contextlib
from collections.abc import Iterable

import psutil


def family(parent: psutil.Process) -> list[psutil.Process]:
    return [parent, *parent.children(recursive=True)]


def resident_mb(processes: Iterable[psutil.Process]) -> float:
    """Resident memory in megabytes (10^6 bytes)."""
    return sum(float(each.memory_info().rss) for each in processes) / 1e6


def proportional_mb(processes: Iterable[psutil.Process]) -> float | None:
    """Memory in megabytes with each shared page counted once; None where the system hides it."""
    try:
        return sum(float(each.memory_full_info().pss) for each in processes) / 1e6
    except (AttributeError, psutil.AccessDenied):
        return None


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """User and system time of these processes and of their children that have ended."""
    seconds = 0.0
    for each in processes:
        # A process that has just ended is counted with its parent.
        with contextlib.suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds
