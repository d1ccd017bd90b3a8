"""Free space on the disk of the database file, and the reserve that is kept for accepted timers."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import structlog
from msgspec import Struct

_log = structlog.get_logger()

MARGIN_BYTES = 64 * 2**20
"""Space above the reserve below which the log is kept small, so as not to eat the reserve."""


class DiskStatus(Struct, frozen=True):
    """`is_short` while free space is below the reserve, `is_full` while writes find no room."""

    free_bytes: int
    reserve_bytes: int
    is_short: bool
    is_full: bool


class DiskSpace:
    """Free space as it was when last looked at.

    The reserve is for claims, settlements and cancels: below it, nothing new is accepted. It is
    enough again at nine eighths of the reserve, so that a disk at the limit does not go back and
    forth. Any thread may look.
    """

    def __init__(self, path: Path, reserve_bytes: int) -> None:
        self._path = path
        self._log_path = Path(f"{path}-wal")
        self._looking = threading.Lock()
        self.reserve_bytes = reserve_bytes
        self.free_bytes = 0
        self.is_short = False
        self.is_tight = False
        self.look()

    def look(self) -> None:
        with self._looking, suppress(OSError):
            disk = os.statvfs(self._path.parent)
            self.free_bytes = disk.f_bavail * disk.f_frsize
            self.is_tight = self.free_bytes < self.reserve_bytes + MARGIN_BYTES
            enough_bytes = self.reserve_bytes
            if self.is_short:
                enough_bytes += self.reserve_bytes // 8
            is_short = self.free_bytes < enough_bytes
            if is_short != self.is_short:
                self.is_short = is_short
                self._report()

    def log_bytes(self) -> int:
        """Size of the log's file."""
        try:
            return self._log_path.stat().st_size
        except OSError:
            return 0

    def _report(self) -> None:
        sizes = {
            "file": str(self._path.absolute()),
            "free_bytes": self.free_bytes,
            "reserve_bytes": self.reserve_bytes,
        }
        if self.is_short:
            _log.error(
                "disk.short",
                **sizes,
                log_bytes=self.log_bytes(),
                advice="nothing new is accepted, and accepted timers fire: make room on the disk, "
                "or lower DISK_RESERVE_BYTES",
            )
        else:
            _log.info("disk.enough", **sizes)
