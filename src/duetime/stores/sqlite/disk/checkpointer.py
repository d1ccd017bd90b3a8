"""Copying the write-ahead log into the database file, beside the writer."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw
import structlog
from msgspec import Struct

from duetime.clock import SystemClock
from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk.failure import OnFailure, leaves_doubt
from duetime.stores.sqlite.disk.log_readers import log_readers
from duetime.stores.sqlite.disk.space import DiskSpace

_log = structlog.get_logger()

LOG_PAGES_BEFORE_CHECKPOINT = 8_192
"""Pages in the log that start a checkpoint: 32 MiB. A smaller log would need more checkpoints, a
larger one a longer recovery after a crash."""

FEW_PAGES = 512
"""Pages that may be left to the writer."""

MAX_PASSES = 4
"""Passes of the thread over a log to which the writer keeps adding."""

SHORT_LOG_PAGES = 1_024
"""Pages in the log that start a checkpoint while the disk is nearly full: 4 MiB."""

PAGES_BEFORE_LOOK = 1_024
"""Pages written after which the writer looks at the free space."""

LOOK_SECONDS = 0.5
"""Time after which the thread looks at the free space, and at a log that a reader holds."""

_PAGE_BYTES = 4_096
_CACHE_KIB = 1_024


class LogStatus(Struct, frozen=True):
    """The size of the log's file, and the time since all of the log was copied, or since the file
    was opened."""

    size_bytes: int
    copied_seconds_ago: float


class Checkpointer:
    """Copies the log in two steps, of which only the second, short one stalls the writer.

    The thread copies the log while the writer goes on, until little is left. Then the writer,
    between two commits, copies the rest. The log is then wholly copied, and the next commit starts
    it from its beginning. Without the second step the log would grow for as long as the writer is
    busy.

    A reader holds the log: pages that are newer than its view cannot be copied before it ends.
    While the disk is nearly full, the log is copied early and its file is kept small.

    `on_failure` ends the process. It is called when a copied page could not be written or synced:
    the log is then not to be used again before all of it is copied anew.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        writing: apsw.Connection,
        on_failure: OnFailure,
        space: DiskSpace,
        *,
        log_pages: int = LOG_PAGES_BEFORE_CHECKPOINT,
    ) -> None:
        self._path = path
        self._connection = connect(path, _CACHE_KIB)
        # The thread's own checkpoints never wait: it looks again soon.
        self._connection.set_busy_timeout(0)
        self._on_failure = on_failure
        self._descriptor = descriptor
        self._writing = writing
        self._space = space
        self._usual_pages = log_pages
        self._log_pages = 0
        self._unseen_pages = 0
        self._begin_anew()
        self._due = threading.Event()
        self._running = False
        self._copied = False
        self._has_failed = False
        self._closed = False
        self._limited_to_pages = 0
        self._clock = SystemClock()
        self._copied_at_seconds = self._clock.monotonic()
        # The log of the last process may still have to be copied.
        self._look(writing)
        self._limit_file()
        writing.set_wal_hook(self._on_commit)
        self._thread = threading.Thread(target=self._run, name="duetime-sqlite-checkpointer")
        self._thread.daemon = True
        self._thread.start()

    def between_commits(self) -> None:
        """Called by the writer's thread while no transaction is open."""
        if self._unseen_pages >= PAGES_BEFORE_LOOK:
            self._unseen_pages = 0
            self._look(self._writing)
        if self._copied:
            self._copied = False
            self._finish()
            self._running = False
        elif self._log_pages >= self._due_pages and not self._running:
            self._running = True
            self._due.set()

    def close(self) -> None:
        """Copy the whole log, as far as readers allow. The writer must have ended.

        SQLite would do that when its last connection closes, but says nothing of an error then.
        """
        self._closed = True
        self._due.set()
        self._thread.join()
        try:
            self._copy_and_empty()
        finally:
            self._connection.close()

    @property
    def status(self) -> LogStatus:
        """As it was when last looked at. Any thread may ask."""
        ago_seconds = self._clock.monotonic() - self._copied_at_seconds
        return LogStatus(self._space.log_size_bytes, ago_seconds)

    @property
    def _due_pages(self) -> int:
        """Pages in the log at which the next checkpoint is due."""
        if self._space.is_tight and not self._is_unfinished:
            return min(self._due_at_pages, SHORT_LOG_PAGES)
        return self._due_at_pages

    def _on_commit(self, _connection: apsw.Connection, _name: str, log_pages: int) -> int:
        if log_pages < self._log_pages:
            # The log has started from its beginning.
            self._begin_anew()
            self._unseen_pages += log_pages
        else:
            self._unseen_pages += log_pages - self._log_pages
        self._log_pages = log_pages
        return int(apsw.SQLITE_OK)

    def _finish(self) -> None:
        """The writer's step: copy the rest, so that the next commit starts the log anew."""
        self._limit_file()
        pages = self._checkpoint(self._writing)
        self._is_unfinished = pages is None or not pages.is_copied
        if self._is_unfinished:
            # The thread tries again soon, because trying at every commit would cost too much.
            self._due_at_pages = self._log_pages + self._usual_pages
        else:
            self._log_pages = 0
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._due_at_pages = self._usual_pages
        self._warned_at_pages = 0
        self._is_unfinished = False

    def _look(self, connection: apsw.Connection) -> None:
        """Look at the free space, and at the pages by which a copied log makes the file grow."""
        growth_bytes = None
        with suppress(apsw.Error, OSError):
            size_bytes = int(connection.pragma("page_count")) * _PAGE_BYTES
            growth_bytes = max(0, size_bytes - os.fstat(self._descriptor).st_size)
        self._space.look(growth_bytes)

    def _limit_file(self) -> None:
        """Let the log's file shrink to twice its usual size when the log starts anew. A reader may
        have made it grow."""
        pages = 2 * (SHORT_LOG_PAGES if self._space.is_tight else self._usual_pages)
        if pages != self._limited_to_pages:
            self._limited_to_pages = pages
            self._writing.pragma("journal_size_limit", pages * _PAGE_BYTES)

    def _report_held(self, pages: "_Pages") -> None:
        """Warn when a held log has become large for its disk, and again when it has doubled."""
        warn_at_pages = 2 * self._warned_at_pages or 4 * self._usual_pages
        if self._space.is_tight and not self._warned_at_pages:
            warn_at_pages = min(warn_at_pages, SHORT_LOG_PAGES)
        if pages.is_copied or pages.in_log < warn_at_pages:
            return
        self._warned_at_pages = pages.in_log
        _log.warning(
            "sqlite.log_held",
            log_bytes=pages.in_log * _PAGE_BYTES,
            held_bytes=(pages.in_log - pages.copied) * _PAGE_BYTES,
            readers=log_readers(self._path) or ["this process, or one that cannot be seen"],
            advice="a read transaction keeps the log from being copied, so it grows: end it",
        )

    def _sync(self) -> None:
        """Sync the copied pages to disk.

        SQLite syncs only when a checkpoint reaches the end of the log. The writer's step would
        then sync everything, which took 90 ms on a store of two million timers.
        """
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._on_failure("sqlite.storage_failed", error)
            raise

    def _run(self) -> None:
        while True:
            is_due = self._due.wait(LOOK_SECONDS)
            self._due.clear()
            if self._closed:
                return
            self._look(self._connection)
            try:
                if is_due:
                    self._copy_most()
                    self._copied = True
                else:
                    self._copy_leftovers()
            except Exception as error:
                _log.warning("sqlite.checkpoint_failed", error=repr(error), exc_info=True)
                # Trying again at every commit would fill the logs.
                self._due_at_pages = self._log_pages + self._usual_pages
                self._running = False

    def _copy_most(self) -> None:
        pages = None
        for _ in range(MAX_PASSES):
            pages = self._copy()
            if pages is not None and self._log_pages - pages.copied <= FEW_PAGES:
                return
        if pages is not None:
            self._report_held(pages)

    def _copy_leftovers(self) -> None:
        """Copy what readers held, and give the room of a large log back while the disk is nearly
        full. The writer may be idle, so nothing else would do it."""
        is_large = self._space.log_bytes() > 2 * SHORT_LOG_PAGES * _PAGE_BYTES
        shrinks = is_large and self._space.is_tight
        if self._is_unfinished or shrinks:
            pages = self._copy()
            if pages is None:
                return
            self._report_held(pages)
            if pages.is_copied:
                self._is_unfinished = False
                if shrinks:
                    self._empty_log()

    def _copy_and_empty(self) -> None:
        pages = self._copy()
        if pages is None:
            # SQLite would try once more when it closes, and use up the disk.
            self._writing.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        elif pages.is_copied:
            # Another program that has the file open keeps SQLite from removing the log.
            self._empty_log()

    def _copy(self) -> "_Pages | None":
        pages = self._checkpoint(self._connection)
        self._sync()
        return pages

    def _empty_log(self) -> None:
        """Give the room of the log's file back, unless somebody uses it."""
        self._checkpoint(self._connection, apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _checkpoint(
        self, connection: apsw.Connection, mode: int = apsw.SQLITE_CHECKPOINT_PASSIVE
    ) -> "_Pages | None":
        """Copy as much of the log as readers allow. None if it cannot be copied now.

        A checkpoint without room loses nothing: the log stays as it is until the next one. But it
        is not begun if the room is seen to be too little: its pages would take what is left for
        the log, and accepted timers fire only while the log can grow.
        """
        self._look(connection)
        if not self._space.can_copy_log:
            self._report_failed("the disk has no room for the pages of the log")
            return None
        try:
            pages = connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            _log.debug("sqlite.checkpoint_postponed")
            return None
        except apsw.Error as error:
            if leaves_doubt(error, connection):
                self._on_failure("sqlite.storage_failed", error)
            self._report_failed(str(error))
            return None
        self._has_failed = False
        copied = _Pages(*pages)
        if copied.is_copied:
            self._copied_at_seconds = self._clock.monotonic()
        return copied

    def _report_failed(self, error: str) -> None:
        """Warn once: on a full disk it fails again and again."""
        if not self._has_failed:
            self._has_failed = True
            _log.warning("sqlite.checkpoint_failed", error=error)


class _Pages(NamedTuple):
    """Pages in the log, and how many of them are copied."""

    in_log: int
    copied: int

    @property
    def is_copied(self) -> bool:
        return self.copied == self.in_log
