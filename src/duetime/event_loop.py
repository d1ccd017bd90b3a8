"""The event loop: running a coroutine on it until a signal stops it, and taking turns."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

ResultT = TypeVar("ResultT")

STORAGE_FAILED_STATUS = 74
"""Exit status of a process that ended itself because its storage failed (EX_IOERR)."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
