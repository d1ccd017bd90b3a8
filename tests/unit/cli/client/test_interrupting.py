"""Ctrl-C in the moment before a call blocks."""

import subprocess
import sys

LOST_SIGNAL = """
import ctypes, os, signal, sys
from collections import deque
from functools import partial
from operator import call

from duetime.cli.client.platform import interruptible

libc = ctypes.CDLL(None)
never_written, _ = os.pipe()
# Between these two calls Python runs no bytecode: it notes the signal, and then blocks.
calls = [partial(getattr(libc, "raise"), signal.SIGINT), partial(os.read, never_written, 1)]
try:
    with interruptible():
        deque(map(call, calls))
except KeyboardInterrupt:
    print("interrupted")
print(signal.getsignal(signal.SIGALRM) is signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL))
"""


def test_ctrl_c_just_before_a_call_blocks_is_not_lost() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", LOST_SIGNAL], capture_output=True, text=True, timeout=60, check=True
    )
    assert finished.stdout == "interrupted\nTrue (0.0, 0.0)\n"
