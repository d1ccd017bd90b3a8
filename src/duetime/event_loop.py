"""The event loop: running a coroutine on it until a signal stops it, taking turns, and tuning the
interpreter for it."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

ResultT = TypeVar("ResultT")

STORAGE_FAILED_STATUS = 74
"""Exit status of a process that ended itself because its storage failed (EX_IOERR)."""

SWITCH_INTERVAL_SECONDS = 0.00001
"""Time that a thread may keep the interpreter while another one waits for it. The store's writer
needs it briefly, a few times per commit; Python's 5 ms would cap commits at 200 a second."""

GARBAGE_THRESHOLD = 50_000
"""New containers before the collector looks for cycles. Requests and deliveries make hardly any;
Python's 700 would make it look hundreds of times a second."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def tune_interpreter() -> None:
    """Let the threads of the store in quickly, and look for garbage rarely."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)


def run(main: Coroutine[None, None, ResultT]) -> ResultT:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def next_turn() -> None:
    """Let everything run that is ready, then go on."""
    loop = asyncio.get_running_loop()
    turn = loop.create_future()
    loop.call_soon(_set_if_awaited, turn)
    await turn


def _set_if_awaited(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def stop_signal() -> asyncio.Event:
    """An event that SIGINT and SIGTERM set. A second signal, of either kind, ends
    the process at once."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopped.set()
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    return stopped


async def until_stopped(main: Coroutine[None, None, None]) -> None:
    """Run the coroutine until it ends, or until SIGINT or SIGTERM cancels it."""
    working = asyncio.ensure_future(main)
    stopping = asyncio.ensure_future(stop_signal().wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
