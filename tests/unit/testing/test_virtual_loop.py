import asyncio

import pytest

from duetime.testing import Deadlock, LoopClock, VirtualTimeLoop, on_virtual_time
from duetime.testing.virtual_clock import START_AT
from duetime.testing.virtual_loop import run_on_virtual_time


@on_virtual_time
async def test_hours_pass_at_once_and_exactly() -> None:
    clock = LoopClock()
    await clock.sleep(36_000.25)
    assert clock.monotonic() == 36_000.25
    assert clock.now() == START_AT + 36_000_250_000


@on_virtual_time
async def test_timeouts_and_sleepers_run_in_the_order_of_their_deadlines() -> None:
    clock, woken = LoopClock(), list[float]()

    async def nap(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    naps = [asyncio.create_task(nap(seconds)) for seconds in (3, 1, 2)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await asyncio.Event().wait()
    assert woken == [1, 2]
    await asyncio.gather(*naps)


@on_virtual_time
async def test_a_jump_of_the_wall_clock_leaves_sleepers_alone() -> None:
    clock = LoopClock()
    clock.jump_wall(-60)
    await clock.sleep(1)
    assert (clock.monotonic(), clock.now()) == (1, START_AT - 59_000_000)


@on_virtual_time
async def test_skipped_time_makes_calls_late() -> None:
    clock, loop = LoopClock(), asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.sleep(0)
    loop.skip(5)
    await sleeper
    assert clock.monotonic() == 5


def test_a_deadlock_is_raised_and_names_the_waiting_tasks() -> None:
    async def wait_for_nothing() -> None:
        asyncio.current_task().set_name("the waiting one")  # type: ignore[union-attr]
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="the waiting one"):
        run_on_virtual_time(wait_for_nothing())


def test_timers_can_be_made_to_fire_early() -> None:
    async def measure() -> float:
        clock = LoopClock()
        await clock.sleep(1)
        return clock.monotonic()

    assert 0.9995 < run_on_virtual_time(measure(), fires_early_seconds=0.0004) < 1
