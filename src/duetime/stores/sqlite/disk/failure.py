"""Storage errors after which nobody knows what is on disk: the process ends at once."""

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import structlog

from duetime.event_loop import STORAGE_FAILED_STATUS

_log = structlog.get_logger()

LAST_WORDS_SECONDS = 5.0
"""Time for the last line of the log; standard error may be on the disk that fails."""

_COPIED_PAGES_OFFSET = 96
"""Position of `nBackfill` in the index of the log (https://sqlite.org/walformat.html)."""

# Nothing was written: a page could not be read, a lock or memory could not be had, or the index of
# the log, which is made anew at every start, could not grow.
_WITHOUT_A_WRITE = frozenset(
    {
        apsw.SQLITE_IOERR_ACCESS,
        apsw.SQLITE_IOERR_BLOCKED,
        apsw.SQLITE_IOERR_CHECKRESERVEDLOCK,
        apsw.SQLITE_IOERR_CONVPATH,
        apsw.SQLITE_IOERR_CORRUPTFS,
        apsw.SQLITE_IOERR_FSTAT,
        apsw.SQLITE_IOERR_GETTEMPPATH,
        apsw.SQLITE_IOERR_IN_PAGE,
        apsw.SQLITE_IOERR_LOCK,
        apsw.SQLITE_IOERR_MMAP,
        apsw.SQLITE_IOERR_NOMEM,
        apsw.SQLITE_IOERR_RDLOCK,
        apsw.SQLITE_IOERR_READ,
        apsw.SQLITE_IOERR_SHMLOCK,
        apsw.SQLITE_IOERR_SHMMAP,
        apsw.SQLITE_IOERR_SHMOPEN,
        apsw.SQLITE_IOERR_SHMSIZE,
        apsw.SQLITE_IOERR_SHORT_READ,
        apsw.SQLITE_IOERR_UNLOCK,
    }
)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

OnFailure = Callable[[str, BaseException], None]
"""Called with the name of an event and the error. Nothing may be written or answered after it."""


def is_out_of_room(error: Exception, connection: apsw.Connection) -> bool:
    """Whether a write found no room. SQLite knows a full disk; a quota and a limit of the file's
    size look like a failed write."""
    if isinstance(error, apsw.FullError):
        return True
    return (
        isinstance(error, apsw.IOError)
        and _code_of(error) in (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE)
        and connection.system_errno in _NO_ROOM
    )


def leaves_doubt(error: BaseException, connection: apsw.Connection) -> bool:
    """Whether the error leaves open what is on disk. A write without room does not: SQLite rolls
    it back."""
    return (
        isinstance(error, apsw.IOError)
        and _code_of(error) not in _WITHOUT_A_WRITE
        and not is_out_of_room(error, connection)
    )


class EndOfProcess:
    """Ends the process without any clean-up, so that the log stays as it is for the next start.

    After a failed sync the kernel may drop the pages that it could not write, and later syncs
    succeed. Pages copied into the database file are then lost unless the log, which is still
    whole, is copied again. An orderly end would copy what is left and delete the log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, event: str, error: BaseException) -> None:
        watchdog = threading.Timer(LAST_WORDS_SECONDS, os._exit, [STORAGE_FAILED_STATUS])
        watchdog.daemon = True
        # Without a watchdog the end may take longer, but it comes.
        with suppress(RuntimeError):
            watchdog.start()
        try:
            self._forget_copied_pages()
            _log.critical(
                event,
                file=str(self._path.absolute()),
                error=_described(error),
                advice="check the disk, then start again: accepted timers are in the log beside "
                "the file, and the next start replays it",
                # The place in our code says nothing about a failing disk.
                exc_info=None if isinstance(error, (OSError, apsw.Error)) else error,
            )
        finally:
            os._exit(STORAGE_FAILED_STATUS)

    def _forget_copied_pages(self) -> None:
        """Note in the log's index that nothing was copied.

        The next start makes a new index, unless another program has the database open. The
        descriptor stays open: closing it would release SQLite's locks on the index.
        """
        with suppress(OSError):
            index = os.open(f"{self._path}-shm", os.O_RDWR | os.O_CLOEXEC)
            os.pwrite(index, bytes(4), _COPIED_PAGES_OFFSET)


def _described(error: BaseException) -> str:
    if isinstance(error, apsw.Error):
        return f"{error} ({apsw.mapping_extended_result_codes.get(_code_of(error))})"
    return repr(error)


def _code_of(error: apsw.Error) -> int:
    """SQLite's extended result code, which the driver's type stubs do not declare."""
    code: int = getattr(error, "extendedresult", apsw.SQLITE_ERROR)
    return code
