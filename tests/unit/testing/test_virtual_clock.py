import asyncio

import pytest

from duetime.domain.instants import Instant
from duetime.testing import VirtualClock


async def test_a_sleeper_wakes_when_its_time_has_passed_and_not_before() -> None:
    clock = VirtualClock()
    sleeper = asyncio.create_task(clock.sleep(2))
    await clock.wait_for_sleepers()
    clock.advance(1.999999)
    await clock.sleep(0)
    assert not sleeper.done()
    clock.advance(0.000001)
    await sleeper
    assert clock.monotonic() == 2


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    clock = VirtualClock()
    woken: list[float] = []

    async def nap(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    naps = [asyncio.create_task(nap(seconds)) for seconds in (3, 1, 2)]
    await clock.wait_for_sleepers(3)
    assert clock.seconds_until_wake == 1
    clock.advance(10)
    await asyncio.gather(*naps)
    assert woken == [1, 2, 3]
    assert clock.seconds_until_wake is None


async def test_a_jump_of_the_wall_clock_wakes_no_sleeper() -> None:
    clock = VirtualClock(Instant(0))
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.wait_for_sleepers()
    clock.jump_wall(3_600)
    await clock.sleep(0)
    assert not sleeper.done()
    assert (clock.now(), clock.monotonic()) == (3_600_000_000, 0)
    clock.jump_wall(-7_200)
    clock.advance(1)
    await sleeper
    assert (clock.now(), clock.monotonic()) == (-3_599_000_000, 1)


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = VirtualClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.wait_for_sleepers()
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert clock.sleeping == 0
    assert clock.seconds_until_wake is None
    clock.advance(2)


async def test_sleeping_for_no_time_lets_others_run() -> None:
    clock = VirtualClock()
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await clock.sleep(0)
    await clock.sleep(-1)
    assert ran.is_set()


def test_many_small_steps_add_up_exactly() -> None:
    clock = VirtualClock(Instant(0))
    for _ in range(1_000):
        clock.advance(0.001)
    assert (clock.now(), clock.monotonic()) == (1_000_000, 1.0)


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="jump_wall"):
        VirtualClock().advance(-1)
