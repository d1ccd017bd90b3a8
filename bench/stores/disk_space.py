"""Room on the disk that is measured, for what is to be stored there."""

import shutil
from pathlib import Path

from bench.scale import StoreName

GB = 10**9
BYTES_PER_TIMER = 950
"""Tables with their indexes, measured with a million."""
LOG_BYTES = 10 * GB
"""PostgreSQL's write-ahead log that is left of their making, which may exceed the server's limit
while a checkpoint is under way."""
LOG_BYTES_PER_TIMER = 1_000


class MachineUnfit(Exception):
    """The measurement cannot take place here; the message says what is missing."""


def disk_bytes(store: StoreName, timers: int) -> int:
    """What a store with so many timers takes at most."""
    has_log = store is StoreName.POSTGRESQL
    log_bytes = min(LOG_BYTES, timers * LOG_BYTES_PER_TIMER) if has_log else 0
    return timers * BYTES_PER_TIMER + log_bytes


def check_room(directory: Path, bytes_needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < bytes_needed:
        raise MachineUnfit(
            f"this needs about {bytes_needed / GB:.0f} GB of disk and {directory} has"
            f" {free / GB:.0f} GB free: make room, choose another place with --output, or store"
            " less with --stored"
        )
