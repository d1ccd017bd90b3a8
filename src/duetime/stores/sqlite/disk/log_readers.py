"""The programs that read the database, and so may keep its log from being copied."""

import os
from pathlib import Path

_LOCKS = Path("/proc/locks")

# The locks of readers in the index of the log (https://sqlite.org/walformat.html).
_FIRST_LOCK = 123
_LAST_LOCK = 127


def log_readers(path: Path) -> list[str]:
    """Processes with a read transaction on the database, without this one, where the system can
    tell. They are read from a list: opening the index, and closing it again, would release the
    locks that SQLite has on it."""
    try:
        index = os.stat(f"{path}-shm").st_ino
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return []
    processes = {process for line in lines if (process := _reader(line, index)) is not None}
    return [_named(process) for process in sorted(processes - {os.getpid()})]


def _reader(line: str, index: int) -> int | None:
    """The process of a line such as `7: POSIX ADVISORY READ 4711 08:01:131 123 123`, if it is a
    reader of this index."""
    fields = line.split()
    if len(fields) != 8 or fields[3] != "READ" or not fields[4].isdigit():
        return None
    if fields[5].rpartition(":")[2] != str(index) or fields[7] == "EOF":
        return None
    first, last = int(fields[6]), int(fields[7])
    return int(fields[4]) if first <= _LAST_LOCK and last >= _FIRST_LOCK else None


def _named(process: int) -> str:
    try:
        name = Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        name = "process"
    return f"{name} (pid {process})"
