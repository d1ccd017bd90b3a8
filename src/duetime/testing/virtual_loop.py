"""An event loop on virtual time, so that the engine lives through hours in milliseconds."""

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.testing.virtual_clock import START_AT

P = ParamSpec("P")
T = TypeVar("T")


class Deadlock(RuntimeError):
    """All tasks wait, and nothing is scheduled that could wake one of them."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop that never waits: when nothing is ready, time jumps to the next
    scheduled call.

    Code under it must not wait for the outside world (sockets, threads, processes): time would
    race past it. `fires_early_seconds` imitates loops whose timers fire a little too early.
    """

    def __init__(self, *, fires_early_seconds: float = 0.0) -> None:
        self._elapsed_seconds = 0.0
        super().__init__(_JumpingSelector(self, fires_early_seconds))
        if fires_early_seconds:
            # The time by which asyncio lets a scheduled call run early.
            self._clock_resolution = fires_early_seconds

    def time(self) -> float:
        return self._elapsed_seconds

    def skip(self, seconds: float) -> None:
        """Let time pass while nothing runs, as when a process is suspended."""
        if seconds < 0:
            raise ValueError("time only moves on")
        self._elapsed_seconds += seconds


class LoopClock:
    """Implements the clock port on the time of the running event loop.

    The wall clock starts at `start_at` and can be set apart from the monotonic one.
    """

    def __init__(self, start_at: Instant = START_AT) -> None:
        self._base = start_at

    def now(self) -> Instant:
        return Instant(self._base + round(self.monotonic() * MICROSECONDS_PER_SECOND))

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        handle = loop.call_later(max(seconds, 0.0), _wake, woken)
        try:
            await woken
        finally:
            handle.cancel()

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back with a negative number. No sleeper wakes."""
        self._base = Instant(self._base + round(seconds * MICROSECONDS_PER_SECOND))


def run_on_virtual_time(main: Coroutine[Any, Any, T], *, fires_early_seconds: float = 0.0) -> T:
    """Run the coroutine on a new virtual loop. Raises `Deadlock` when it can never end."""

    def new_loop() -> VirtualTimeLoop:
        return VirtualTimeLoop(fires_early_seconds=fires_early_seconds)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def on_virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Turn an async function into a plain one that runs on a virtual loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_on_virtual_time(test(*args, **kwargs))

    return run


_LEAST_STEP_SECONDS = 0.00005


class _JumpingSelector(selectors.SelectSelector):
    """Advances the loop's time instead of waiting."""

    def __init__(self, loop: VirtualTimeLoop, early_seconds: float) -> None:
        super().__init__()
        self._loop = loop
        self._early_seconds = early_seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        if timeout is None:
            raise Deadlock(_waiting_tasks(self._loop))
        # Time advances even if a call fires early and is scheduled again for the rest.
        least_step = max(min(timeout, _LEAST_STEP_SECONDS), math.ulp(self._loop.time()))
        self._loop.skip(max(timeout - self._early_seconds, least_step))
        return events


def _waiting_tasks(loop: VirtualTimeLoop) -> str:
    lines = ["nothing is scheduled, and these tasks wait for each other or for the outside:"]
    for task in asyncio.all_tasks(loop):
        frames = task.get_stack(limit=1)
        place = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else "?"
        lines.append(f"  {task.get_name()} at {place}")
    return "\n".join(lines)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
