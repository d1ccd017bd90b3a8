"""How Python is tuned for a process of the service."""

import gc
import sys

SWITCH_INTERVAL_SECONDS = 0.00001
"""Time that a thread may keep the interpreter while another one waits for it. The store's writer
needs it briefly, a few times per commit; Python's 5 ms would cap commits at 200 a second."""

GARBAGE_THRESHOLD = 50_000
"""New containers before the collector looks for cycles. Requests and deliveries make hardly any;
Python's 700 would make it look hundreds of times a second."""


def tune_interpreter() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)
