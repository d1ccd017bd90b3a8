"""Stops the PostgreSQL servers of a test run when the run is over, however it ended.

Run as `python guard.py DIRECTORY`.
"""

import contextlib
import fcntl
import os
import select
import shutil
import signal
import sys
from pathlib import Path

import psutil

PATIENCE_SECONDS = 10
RUN_LOCK = "run.lock"
GUARD_LOCK = "guard.lock"


def guard(directory: Path) -> None:
    """Wait for the end of the run, crash every server whose data lies in the directory, and remove
    the directory.

    The run holds RUN_LOCK for as long as it lives, so the kernel gives it to us at the run's end,
    even if that was a SIGKILL. Announces itself on standard output. GUARD_LOCK is held until
    everything is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (directory / GUARD_LOCK).open("w") as held, (directory / RUN_LOCK).open() as awaited:
        fcntl.flock(held, fcntl.LOCK_EX)
        sys.stdout.write("guarding\n")
        sys.stdout.flush()
        fcntl.flock(awaited, fcntl.LOCK_EX)
        for pid_file in directory.glob("*/data/postmaster.pid"):
            with contextlib.suppress(psutil.NoSuchProcess):
                _crash(psutil.Process(int(pid_file.read_text().split("\n", 1)[0])))
        shutil.rmtree(directory, ignore_errors=True)


def _crash(server: psutil.Process) -> None:
    """End a server and wait until it is gone. SIGQUIT is what `pg_ctl stop -m immediate` sends."""
    server.send_signal(signal.SIGQUIT)
    if not _ends(server):
        server.kill()


def _ends(process: psutil.Process) -> bool:
    if sys.platform == "linux":
        # Unlike psutil, this does not wait for the parent, which may be slow to notice the end.
        with contextlib.suppress(ProcessLookupError):
            end = select.poll()
            end.register(os.pidfd_open(process.pid))
            return bool(end.poll(PATIENCE_SECONDS * 1_000))
    else:
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
    return not process.is_running()


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
