"""Signals stop a process in order, and a second one ends it."""

import signal
import subprocess
import sys
from itertools import product

import pytest

STOPS_SLOWLY = """
import asyncio
from duetime.event_loop import run, stop_signal

async def main():
    stopped = stop_signal()
    print("started", flush=True)
    await stopped.wait()
    print("stopping", flush=True)
    await asyncio.Event().wait()

run(main())
"""
KINDS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize(("first", "second"), list(product(KINDS, KINDS)))
def test_a_second_signal_of_either_kind_ends_the_process(
    first: signal.Signals, second: signal.Signals
) -> None:
    command = [sys.executable, "-c", STOPS_SLOWLY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(first)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(second)
        try:
            assert process.wait(timeout=60) == -second
        finally:
            process.kill()
