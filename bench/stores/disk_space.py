"""Disk space that the stores need."""

import shutil
from pathlib import Path

from bench.scale import StoreName

GB = 10**9
BYTES_PER_TIMER = 950
"""Bytes of tables and indexes per timer, measured with a million timers."""
LOG_BYTES = 10 * GB
"""Bytes of PostgreSQL's write-ahead log after filling. The log may exceed `max_wal_size` during a
checkpoint."""
LOG_BYTES_PER_TIMER = 1_000


class MachineUnfit(Exception):
    """The machine lacks something that the measurement needs; the message names it."""


def disk_bytes(store: StoreName, timers: int) -> int:
    """Largest size of a store with `timers` timers."""
    has_log = store is StoreName.POSTGRESQL
    log_bytes = min(LOG_BYTES, timers * LOG_BYTES_PER_TIMER) if has_log else 0
    return timers * BYTES_PER_TIMER + log_bytes


def check_room(directory: Path, bytes_needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < bytes_needed:
        raise MachineUnfit(
            f"this run needs about {bytes_needed / GB:.0f} GB of disk and {directory} has"
            f" {free / GB:.0f} GB free: free some space, choose another directory with --output,"
            " or store fewer timers with --stored"
        )
