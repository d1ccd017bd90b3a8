"""Opening the file: its lock, its schema, the connections and the checkpointer."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import apsw
import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.stores.sqlite.connections import (
    WRITER_CACHE_KIB,
    Reader,
    beside,
    connect,
    has_log,
    not_opened,
)
from duetime.stores.sqlite.disk.checkpointer import Checkpointer
from duetime.stores.sqlite.disk.failure import OnFailure
from duetime.stores.sqlite.disk.log_readers import log_readers
from duetime.stores.sqlite.disk.space import DiskSpace
from duetime.stores.sqlite.file_lock import FileLock
from duetime.stores.sqlite.schema import (
    finish_interrupted_write,
    migrate,
    refuse_log_without_file,
    schema_version,
)

_log = structlog.get_logger()


class OpenFile(NamedTuple):
    """The connections and threads of a file, and `closing`, which closes them in reverse order."""

    connection: apsw.Connection
    checkpointer: Checkpointer
    quick_reader: Reader
    list_reader: Reader
    space: DiskSpace
    closing: ExitStack


def _create_private(path: Path) -> None:
    """Make a new file readable by its owner only: callbacks carry credentials.

    SQLite gives its log the same mode. An existing file keeps its mode.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _warn_of_empty_file(path: Path) -> None:
    """A file without a byte is a new store: some installations make it beforehand. It may also be
    what SQLite leaves of an unfinished copy."""
    if path.exists() and not path.stat().st_size:
        _log.warning(
            "store.empty_file",
            database=str(path),
            advice="the file was empty, so this is a new store: if it was meant to be a copy,"
            " stop and restore a backup with `duetime restore`",
        )


def _empty_again(path: Path, kind: type[BaseException] | None) -> None:
    """Take back a new file that could not be opened, for instance on a full disk. The next start
    would refuse a page without a schema as part of a copy, and a log without a file."""
    if kind is not None:
        beside(path, "-wal").unlink(missing_ok=True)
        os.truncate(path, 0)


def _warn_of_log(path: Path, kind: type[BaseException] | None) -> None:
    if kind is None and has_log(path):
        _log.warning(
            "sqlite.log_left",
            file=str(path),
            log_bytes=beside(path, "-wal").stat().st_size,
            readers=log_readers(path),
            advice="the log beside the file may hold accepted timers, because another program reads"
            " the file or the disk is full: keep the two together, and the next start uses both",
        )


def open_file(
    path: Path,
    reserve_bytes: int,
    on_failure: OnFailure,
    *,
    refuse: Callable[[Path], None] = lambda _: None,
) -> OpenFile:
    """Open the file, made if it is absent. `refuse` may raise before the file is migrated; nobody
    else writes to it meanwhile."""
    if not path.parent.is_dir():
        # Creating it would hide a mistyped path or a volume that is not mounted.
        raise StoreUnavailable(f"cannot open {path}: the directory {path.parent} does not exist")
    if path.is_dir():
        raise StoreUnavailable(f"cannot open {path}: it is a directory")
    try:
        with ExitStack() as closing:
            return _open_all(path, closing, DiskSpace(path, reserve_bytes), on_failure, refuse)
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error
    except apsw.Error as error:
        raise not_opened(path, error) from error


def _open_all(
    path: Path,
    closing: ExitStack,
    space: DiskSpace,
    on_failure: OnFailure,
    refuse: Callable[[Path], None],
) -> OpenFile:
    """Open the file for every use. `closing` closes, in reverse order, all that was opened before
    an error."""
    lock = FileLock(path)
    closing.callback(lock.release)
    refuse_log_without_file(path)
    _warn_of_empty_file(path)
    _create_private(path)
    finish_interrupted_write(path)
    # Before anything is written: the file may be of another program, or part of a copy.
    if not schema_version(path, after_crash=lock.follows_crash):
        closing.push(lambda kind, *_: _empty_again(path, kind))
    refuse(path)
    # Closed after all connections: closing any descriptor of a file releases all locks that the
    # process has on it, also SQLite's.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    closing.callback(os.close, descriptor)
    closing.push(lambda kind, *_: _warn_of_log(path, kind))
    # The last connection to close removes the log.
    connection = connect(path, WRITER_CACHE_KIB)
    closing.callback(connection.close)
    migrate(connection)
    # Closed after the readers, which could hold the log.
    checkpointer = Checkpointer(path, descriptor, connection, on_failure, space)
    closing.callback(checkpointer.close)
    # A list that skips far takes long; quick reads should not wait behind it.
    quick_reader = Reader(path)
    closing.callback(quick_reader.close)
    list_reader = Reader(path)
    closing.callback(list_reader.close)
    return OpenFile(connection, checkpointer, quick_reader, list_reader, space, closing.pop_all())
