"""One process per database file."""

import fcntl
import os
from pathlib import Path

from duetime.domain.errors import StoreInUse
from duetime.stores.sqlite.connections import beside, real_path


class FileLock:
    """A lock beside the database file, held for as long as the store is open.

    The lock keeps out a second process, which would claim the same timers. The operating system
    releases the lock when the process dies, however it dies. All names of a file that is reached
    through symbolic links share one lock. `follows_crash` says that the last process died without
    releasing the lock itself.
    """

    def __init__(self, database: Path) -> None:
        self._descriptor = os.open(
            beside(real_path(database), ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise StoreInUse(
                f"{database} is in use by another duetime process (pid {holder or 'unknown'});"
                " stop it, or use another database: one SQLite file serves one process"
            ) from error
        self.follows_crash = bool(os.read(self._descriptor, 1))
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
