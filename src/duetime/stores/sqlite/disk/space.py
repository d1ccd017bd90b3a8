"""Free space on the disk of the database file, and the reserve that is kept for accepted timers."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import structlog
from msgspec import Struct

from duetime.stores.sqlite.disk.log_readers import log_readers

_log = structlog.get_logger()

MARGIN_BYTES = 64 * 2**20
"""Space above the reserve below which the log is kept small, so as not to eat the reserve."""

FULL_BYTES = 64 * 2**10
"""Free space that is as good as none: a commit takes several pages."""


def enough_bytes(reserve_bytes: int) -> int:
    """Free space at which everything is accepted again: nine eighths of the reserve, so that a disk
    at the limit does not go back and forth."""
    return reserve_bytes + reserve_bytes // 8


class DiskStatus(Struct, frozen=True):
    """`is_short` while free space is below the reserve, `is_full` while writes find no room."""

    free_bytes: int
    reserve_bytes: int
    is_short: bool
    is_full: bool


class DiskSpace:
    """Free space as it was when last looked at, less the room that the log needs in the file.

    The log gives its own room back only after all of its pages are copied, and the pages that are
    new to the file need room there first. Their room is as good as used, so copying them does not
    change `free_bytes`.

    The reserve is for claims, settlements and cancels: below it, nothing new is accepted, until
    there is enough again. Any thread may look.
    """

    def __init__(self, path: Path, reserve_bytes: int) -> None:
        """`path` is the file itself, not a link to it."""
        self._path = path
        self._log_path = Path(f"{path}-wal")
        self._looking = threading.Lock()
        self._growth_bytes = 0
        self.reserve_bytes = reserve_bytes
        self.free_bytes = 0
        self.is_short = False
        self.is_tight = False
        self.is_full = False
        self.log_size_bytes = 0
        self.can_copy_log = True
        """False if the copy would use up the disk before it is complete."""
        self.look()

    def look(self, growth_bytes: int | None = None) -> None:
        """`growth_bytes` is what copying the log adds to the file; None if it is not known anew."""
        with self._looking, suppress(OSError):
            if growth_bytes is not None:
                self._growth_bytes = growth_bytes
            self.log_size_bytes = self.log_bytes()
            disk = os.statvfs(self._path.parent)
            available_bytes = disk.f_bavail * disk.f_frsize
            self.is_full = available_bytes < FULL_BYTES
            left_bytes = available_bytes - self._growth_bytes
            # A little more, for the file system's own records of the pages.
            self.can_copy_log = left_bytes >= self._growth_bytes // 64
            self.free_bytes = max(0, left_bytes)
            self.is_tight = self.free_bytes < self.reserve_bytes + MARGIN_BYTES
            reserve_bytes = self.reserve_bytes
            needed_bytes = enough_bytes(reserve_bytes) if self.is_short else reserve_bytes
            is_short = self.free_bytes < needed_bytes
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
                readers=log_readers(self._path),
                advice="nothing new is accepted, and accepted timers fire: make room on the disk, "
                "or lower DISK_RESERVE_BYTES",
            )
        else:
            _log.info("disk.enough", **sizes)
