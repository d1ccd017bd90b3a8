"""Copying the write-ahead log into the database file, beside the writer."""

import os
import threading
from pathlib import Path

import apsw
import structlog

from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk.failure import OnFailure, leaves_doubt

_log = structlog.get_logger()

LOG_PAGES_BEFORE_CHECKPOINT = 8_192
"""Pages in the log that start a checkpoint: 32 MiB. A smaller log would need more checkpoints, a
larger one a longer recovery after a crash."""

FEW_PAGES = 512
"""Pages that may be left to the writer."""

MAX_PASSES = 4
"""Passes of the thread over a log to which the writer keeps adding."""

_CACHE_KIB = 1_024


class Checkpointer:
    """Copies the log in two steps, of which only the second, short one stalls the writer.

    The thread copies the log while the writer goes on, until little is left. Then the writer,
    between two commits, copies the rest. The log is then wholly copied, and the next commit starts
    it from its beginning. Without the second step the log would grow for as long as the writer is
    busy.

    `on_failure` ends the process. It is called when a copied page could not be written or synced:
    the log is then not to be used again before all of it is copied anew.
    """

    def __init__(
        self, path: Path, descriptor: int, writing: apsw.Connection, on_failure: OnFailure
    ) -> None:
        self._connection = connect(path, _CACHE_KIB)
        self._on_failure = on_failure
        self._descriptor = descriptor
        self._writing = writing
        self._log_pages = 0
        self._due_at_pages = LOG_PAGES_BEFORE_CHECKPOINT
        self._due = threading.Event()
        self._running = False
        self._copied = False
        self._closed = False
        writing.set_wal_hook(self._on_commit)
        self._thread = threading.Thread(target=self._run, name="duetime-sqlite-checkpointer")
        self._thread.daemon = True
        self._thread.start()

    def between_commits(self) -> None:
        """Called by the writer's thread while no transaction is open."""
        if self._copied:
            self._copied = False
            self._checkpoint(self._writing)
            self._log_pages = 0
            self._due_at_pages = LOG_PAGES_BEFORE_CHECKPOINT
            self._running = False
        elif self._log_pages >= self._due_at_pages and not self._running:
            self._running = True
            self._due.set()

    def close(self) -> None:
        self._closed = True
        self._due.set()
        self._thread.join()
        self._connection.close()

    def _on_commit(self, _connection: apsw.Connection, _name: str, log_pages: int) -> int:
        if log_pages < self._log_pages:
            # The log has started from its beginning.
            self._due_at_pages = LOG_PAGES_BEFORE_CHECKPOINT
        self._log_pages = log_pages
        return int(apsw.SQLITE_OK)

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
            self._due.wait()
            self._due.clear()
            if self._closed:
                return
            try:
                self._copy_most()
            except Exception as error:
                _log.warning("sqlite.checkpoint_failed", error=repr(error), exc_info=True)
                # Trying again at every commit would fill the logs.
                self._due_at_pages = self._log_pages + LOG_PAGES_BEFORE_CHECKPOINT
                self._running = False
            else:
                self._copied = True

    def _copy_most(self) -> None:
        for _ in range(MAX_PASSES):
            copied_pages = self._checkpoint(self._connection)
            self._sync()
            if self._log_pages - copied_pages <= FEW_PAGES:
                return

    def _checkpoint(self, connection: apsw.Connection) -> int:
        """Copy as much of the log as readers allow; returns the number of pages copied so far.

        A checkpoint without room loses nothing: the log stays as it is until the next one.
        """
        try:
            _, copied_pages = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            _log.debug("sqlite.checkpoint_postponed")
            return 0
        except apsw.Error as error:
            if leaves_doubt(error, connection):
                self._on_failure("sqlite.storage_failed", error)
            _log.warning("sqlite.checkpoint_failed", error=str(error))
            return 0
        return copied_pages
