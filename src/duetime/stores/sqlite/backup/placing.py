"""Putting a copy in place: under a name of its own until it is complete, then in one step."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from duetime.domain.errors import CopyRefused, StoreUnavailable
from duetime.domain.instants import Instant
from duetime.ports.inspection import StoreContent
from duetime.stores.sqlite.backup.snapshot import Advance, copy_snapshot
from duetime.stores.sqlite.connections import beside, has_log, real_path
from duetime.stores.sqlite.file_lock import FileLock

COMPANIONS = ("-wal", "-shm", "-journal")
"""Files of SQLite beside a database. Another database of the same name would be damaged by them."""

_PARTIAL = ".partial"
_BUSY_TIMEOUT_MS = 1_000


def back_up(
    database: Path,
    file: Path,
    *,
    force: bool,
    now: Instant,
    advance: Advance,
    reserve_bytes: int = 0,
) -> StoreContent:
    """Copy the store to a new file, beside a running service. With `force` an old file is replaced.
    On the disk of the store, the copy leaves the service its reserve.

    The file appears complete, checked and on disk, or not at all. A process that is killed leaves
    `FILE.partial`, which the next backup to the same file replaces.
    """
    _refuse_same(database, file)
    file = file.resolve()
    _refuse_directory(file)
    in_the_way = [path for path in (file, *_companions(file)) if path.exists()]
    if in_the_way and not force:
        raise CopyRefused(
            f"{in_the_way[0]} exists: choose another name, or replace it with --force"
        )
    with _replaceable(file), _partial_file(file, database) as partial:
        if not _is_on_same_disk(database, partial):
            reserve_bytes = 0
        content = copy_snapshot(database, partial, now, advance, reserve_bytes=reserve_bytes)
        if not in_the_way and file.exists():
            raise CopyRefused(f"{file} has appeared meanwhile: it was left alone")
        _replace(file, partial)
    return content


def restore(
    file: Path, database: Path, *, force: bool, now: Instant, advance: Advance
) -> StoreContent:
    """Make a copy of the file the store. With `force` the store of before is replaced.

    No service may use the store. A process that is killed at any point leaves the old store or the
    new one, whole, and perhaps `DATABASE.partial`, which the next restore replaces.
    """
    _refuse_same(database, file)
    _refuse_directory(database)
    with _locked(database):
        if is_occupied(database) and not force:
            raise CopyRefused(f"{database} holds timers already: replace it with --force")
        # A symbolic link stays one. SQLite keeps the log beside the file itself.
        target = real_path(database)
        with _partial_file(target, file) as partial:
            content = copy_snapshot(file, partial, now, advance)
            _keep_owner(target, partial)
            _replace(target, partial)
    return content


def is_occupied(database: Path) -> bool:
    return has_log(database) or (database.exists() and database.stat().st_size > 0)


def _refuse_same(database: Path, file: Path) -> None:
    target = real_path(database)
    own = (target, beside(target, ".lock"), *_companions(target))
    if any(_is_same(path, file) for path in own):
        raise CopyRefused(f"{file} belongs to the store itself: choose another file")


def _is_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    with suppress(OSError):
        return path.samefile(other)
    return False


def _is_on_same_disk(path: Path, other: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_dev == other.stat().st_dev
    return False


def _refuse_directory(path: Path) -> None:
    if not path.parent.is_dir():
        raise CopyRefused(f"cannot write {path}: the directory {path.parent} does not exist")
    if path.is_dir():
        raise CopyRefused(f"cannot write {path}: it is a directory")


@contextmanager
def _replaceable(file: Path) -> Iterator[None]:
    """Keep a service from using the file, if one ever did."""
    if beside(file, ".lock").exists():
        with _locked(file):
            yield
    else:
        yield


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    try:
        lock = FileLock(database)
    except StoreUnavailable as error:
        raise CopyRefused(error.message) from error
    except OSError as error:
        raise CopyRefused(f"cannot lock {database}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _partial_file(target: Path, source: Path) -> Iterator[Path]:
    """An empty file beside the target, readable by its owner only, for one process at a time. It is
    removed unless it was renamed."""
    partial = beside(target, _PARTIAL)
    if _is_same(partial, source):
        raise CopyRefused(f"{source} has the name of an unfinished copy: rename it")
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CopyRefused(f"cannot write {partial}: {error.strerror}") from error
    try:
        _take(descriptor, partial)
        for companion in _companions(partial):
            companion.unlink(missing_ok=True)
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        try:
            yield partial
        except BaseException:
            if _is_at(descriptor, partial):
                partial.unlink()
            raise
    finally:
        os.close(descriptor)


def _take(descriptor: int, partial: Path) -> None:
    """Lock the file. Another process may have renamed it between the opening and the lock."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(descriptor, partial):
            return
    raise CopyRefused(f"another command is writing {partial}: wait until it has ended")


def _is_at(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _keep_owner(database: Path, partial: Path) -> None:
    """The service must be able to open the new file, whoever runs this command."""
    if not database.exists():
        return
    old = database.stat()
    try:
        os.chown(partial, old.st_uid, old.st_gid)
        partial.chmod(old.st_mode & 0o777)
    except OSError as error:
        raise CopyRefused(
            f"cannot give the new file the owner of {database}: run this as that user"
        ) from error


def _replace(target: Path, partial: Path) -> None:
    """Put the copy in place. A crash at any point leaves the old database or the new one, whole."""
    try:
        _fold_log(target)
        for companion in _companions(target):
            companion.unlink(missing_ok=True)
        partial.replace(target)
        descriptor = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CopyRefused(f"cannot replace {target}: {error.strerror}") from error


def _fold_log(target: Path) -> None:
    """Move the log of the old database into its file, so that the file is whole without it.

    That takes a lock which no other connection may share. A program that still reads the old
    database would remove the log of the new one when it closes.
    """
    if not target.is_file() or not target.stat().st_size:
        return
    try:
        with closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            connection.pragma("journal_mode", "delete")
    except (apsw.BusyError, apsw.LockedError) as error:
        raise CopyRefused(
            f"another program is reading {target}: try again once it has ended"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError):
        # There is nothing whole to keep.
        return
    except apsw.Error as error:
        raise CopyRefused(f"cannot close {target} properly: {error}") from error


def _companions(path: Path) -> list[Path]:
    return [beside(path, suffix) for suffix in COMPANIONS]
