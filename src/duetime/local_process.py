"""Finds out whether another process on this machine still exists.

The machine knows when a process has died, so its peers here need not wait for its lease to expire.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_START_TIME_FIELD = 19
"""Index of the start time in /proc/<pid>/stat, counted after the name in parentheses."""


def process_name(pid: int | None = None) -> str:
    """A name that no other process ever had: machine boot, process namespace, pid, start.

    Empty where the system hides one of these, or when there is no such process.
    """
    pid = os.getpid() if pid is None else pid
    try:
        boot_id = _BOOT_ID.read_text().strip()
        namespace = os.readlink(_PID_NAMESPACE)
        start = _start_of(pid)
    except OSError:
        return ""
    return "" if start is None else f"{boot_id}/{namespace}/{pid}/{start}"


def _start_of(pid: int) -> str | None:
    """The start time of the process; None when there is no such process. Raises OSError when the
    system hides it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        _check_not_hidden(pid)
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else fields[_START_TIME_FIELD]


def _check_not_hidden(pid: int) -> None:
    """Raises PermissionError if the process exists and the system hides it, as it may hide the
    processes of other users."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        raise PermissionError(f"process {pid} exists and cannot be looked at")


def is_gone(name: str) -> bool:
    """Whether the process of that name ran on this machine and has ended.

    False whenever that is not certain.
    """
    own = _parts(process_name())
    other = _parts(name)
    if own is None or other is None:
        return False
    if own.machine != other.machine:
        return False
    try:
        return _start_of(other.pid) != other.start
    except OSError:
        return False


class _Parts(NamedTuple):
    """`machine` includes the process namespace."""

    machine: str
    pid: int
    start: str


def _parts(name: str) -> _Parts | None:
    rest, _, start = name.rpartition("/")
    machine, _, pid = rest.rpartition("/")
    return _Parts(machine, int(pid), start) if machine and pid.isdecimal() else None
