"""Runs `duetime` commands and kills each at a chosen point of its work on a copy.

Reads lines from standard input: a point, a tab, and the arguments with tabs between them. Answers
each with a line: the exit status, a space, and the number of points that were passed. Points are
calls of C functions, such as those of SQLite and of the operating system, by the modules that make
and place copies of a file. For `duetime copy` they are the moments before and after each statement,
and those at which the command waits for an answer. No command is killed at point 0.
"""

import os
import pathlib
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import asyncpg

import duetime.cli.commands.store.backup
import duetime.cli.commands.store.copy  # noqa: F401
from duetime.cli.main import main
from duetime.stores.copying import run, transfer
from duetime.stores.postgres.copying import target
from duetime.stores.sqlite.backup import placing, snapshot

ENTRIES = {placing.back_up.__code__, placing.restore.__code__}
COUNTED = {placing.__file__, snapshot.__file__}
WAITING = {
    asyncpg.connection.__file__,
    asyncpg.transaction.__file__,
    run.__file__,
    target.__file__,
    transfer.__file__,
}


class KillAt:
    def __init__(self, point: int) -> None:
        self.seen = 0
        self._point = point
        self._is_counting = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code in ENTRIES and event in ("call", "return"):
            self._is_counting = event == "call"
        elif (event == "c_call" and self._is_counting and is_counted(frame)) or (
            event in ("call", "return") and frame.f_code.co_filename in WAITING
        ):
            self.seen += 1
            if self.seen == self._point:
                os.kill(os.getpid(), signal.SIGKILL)


def is_counted(frame: FrameType) -> bool:
    """Whether a module that copies makes the call, itself or through a path."""
    if frame.f_code.co_filename == pathlib.__file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename in COUNTED


def run_to_the_end(point: int, arguments: list[str], report: int) -> NoReturn:
    killer = KillAt(point)
    sys.argv = ["duetime", *arguments]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    status = 0
    sys.setprofile(killer)
    try:
        main()
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.setprofile(None)
    os.write(report, str(killer.seen).encode())
    os._exit(status)


def run_in_a_child(point: int, arguments: list[str]) -> tuple[int, int]:
    """A child has all modules already, so that many kills take little time."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        run_to_the_end(point, arguments, writing)
    os.close(writing)
    points = int(os.read(reading, 20) or 0)
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), points


if __name__ == "__main__":
    # Small steps, so that there are points within the copying.
    snapshot.PAGES_PER_STEP = 4
    for line in sys.stdin:
        point, *arguments = line.rstrip("\n").split("\t")
        status, points = run_in_a_child(int(point), arguments)
        sys.stdout.write(f"{status} {points}\n")
        sys.stdout.flush()
