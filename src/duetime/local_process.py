"""Whether another process on this machine still exists.

A process that died cannot say so, but its machine knows: its peers here need not wait for its
lease to run out.
"""

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_START_TIME_FIELD = 19
"""Of /proc/<pid>/stat, counted after the name in parentheses."""


def process_name(pid: int | None = None) -> str:
    """A name that no other process ever had: machine boot, process namespace, pid, start.

    Empty where the system does not tell, or when there is no such process.
    """
    pid = os.getpid() if pid is None else pid
    try:
        boot_id = _BOOT_ID.read_text().strip()
        namespace = os.readlink(_PID_NAMESPACE)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return ""
    return f"{boot_id}/{namespace}/{pid}/{fields[_START_TIME_FIELD]}"


def is_gone(name: str) -> bool:
    """Whether the process of that name lived on this machine and is no more.

    False whenever that cannot be known for certain.
    """
    own = _parts(process_name())
    other = _parts(name)
    if own is None or other is None:
        return False
    machine, _ = own
    other_machine, pid = other
    return machine == other_machine and process_name(pid) != name


def _parts(name: str) -> tuple[str, int] | None:
    """Machine and process namespace, and the pid."""
    machine, _, rest = name.rpartition("/")[0].rpartition("/")
    return (machine, int(rest)) if machine and rest.isdecimal() else None
